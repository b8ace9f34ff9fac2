package health

import "time"

// subject is what a condition is one of.
type subject uint8

const (
	ofMachine subject = iota
	ofNode
	ofCluster
	// lossOf is the reason of a condition of the Machine by which its instance or bootstrap data are lost, as if it was a status.
	lossOf
	// existence of the Node, or of the Machine, as if it was a condition.
	nodeExistence
	machineExistence
)

// History is what this process has seen of conditions, one for each Machine and one for its Cluster. It answers since when a status
// counts. Times of others need not be right: clocks differ, and are set. So a transition that happened before the eyes of this
// process counts from when it was seen, by the clock of this process; only what was there when the process first looked counts from
// its lastTransitionTime, and never from the future. A time that was seen keeps Go's monotonic reading, so that a clock that is set
// changes nothing about what is measured from it.
type History struct {
	// live means that all that is seen for the first time has happened before the eyes of this process.
	live    bool
	entries []entry
}

type entry struct {
	of         subject
	kind       string
	status     string
	transition time.Time
	seen       time.Time
	// live means that this process has seen another status before.
	live bool
}

// NewHistory is the History of something of which nothing was seen before; live if it did not exist before either.
func NewHistory(live bool) *History { return &History{live: live} }

// observe takes in the status of a condition, "" for one that there is not.
func (h *History) observe(of subject, kind, status string, transition, now time.Time) {
	known := h.find(of, kind)
	switch {
	case known == nil:
		h.entries = append(h.entries, entry{of, kind, status, transition, now, h.live})
	case known.status != status || status != "" && !known.transition.Equal(transition):
		*known = entry{of, kind, status, transition, now, true}
	}
}

func (h *History) find(of subject, kind string) *entry {
	if h == nil {
		return nil
	}
	for i := range h.entries {
		if h.entries[i].of == of && h.entries[i].kind == kind {
			return &h.entries[i]
		}
	}
	return nil
}

// since is since when a status counts that has the transition time.
func (h *History) since(of subject, kind string, transition, now time.Time) time.Time {
	seen, live := now, false
	if known := h.find(of, kind); known != nil {
		seen, live = known.seen, known.live
	}
	if live || transition.IsZero() || transition.After(seen) {
		return seen
	}
	// How long it had been so when it was seen, before the moment when it was seen: that has both readings of the clock, so that a clock
	// that is set later changes nothing.
	return seen.Add(transition.Sub(seen.Round(0)))
}

// Observe takes in what the policies depend on. It comes before Judge, with the same Facts.
func Observe(f Facts, policies ...Policy) {
	h := f.History
	h.observe(machineExistence, "", "True", f.Machine.CreationTimestamp.Time, f.Now)
	observeMachine(h, f, "InfrastructureReady")
	for kind, reasons := range lostReasons {
		status, transition := "", time.Time{}
		if c := condition(f.Machine.Status.Conditions, kind); c != nil && c.Status != "True" {
			if _, lost := reasons[c.Reason]; lost {
				status, transition = c.Reason, c.LastTransitionTime.Time
			}
		}
		h.observe(lossOf, kind, status, transition, f.Now)
	}
	for _, policy := range policies {
		for _, rule := range policy.MachineConditions {
			observeMachine(h, f, rule.Type)
		}
	}
	if f.Unreadable == "" && f.Machine.Status.NodeRef.IsDefined() {
		h.observe(nodeExistence, "", existence(f), time.Time{}, f.Now)
	}
	if f.Unreadable == "" && f.Node != nil {
		for _, policy := range policies {
			for _, rule := range policy.NodeConditions {
				status, transition := "", time.Time{}
				if c := nodeCondition(f.Node, rule.Type); c != nil {
					status, transition = string(c.Status), c.LastTransitionTime.Time
				}
				h.observe(ofNode, rule.Type, status, transition, f.Now)
			}
		}
	}
	h.live = false
}

// existence is "True" or "False", for a Machine that is linked with a Node.
func existence(f Facts) string {
	if f.Node == nil {
		return "False"
	}
	return "True"
}

func observeMachine(h *History, f Facts, kind string) {
	status, transition := "", time.Time{}
	if c := condition(f.Machine.Status.Conditions, kind); c != nil {
		status, transition = string(c.Status), c.LastTransitionTime.Time
	}
	h.observe(ofMachine, kind, status, transition, f.Now)
}

// ObserveCluster takes in what all Machines of a Cluster depend on.
func ObserveCluster(f Facts) {
	if f.Cluster == nil {
		return
	}
	for _, kind := range clusterConditions {
		status, transition := "", time.Time{}
		if c := condition(f.Cluster.Status.Conditions, kind); c != nil {
			status, transition = string(c.Status), c.LastTransitionTime.Time
		}
		f.ClusterHistory.observe(ofCluster, kind, status, transition, f.Now)
	}
	f.ClusterHistory.live = false
}
