package machinehealth

import (
	"cmp"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/health"
)

const (
	// confirmedFor is how long ago a Machine may have been confirmed when it is replaced, and how long a question is remembered.
	confirmedFor = time.Minute
	// minAsk and maxAsk are how soon a question is to be repeated: an answer to a read takes milliseconds, and what has lasted for long may
	// last on.
	minAsk, maxAsk = 2 * time.Second, 30 * time.Second
	// notJudged is what keeps a Machine from being confirmed when nothing says more.
	notJudged = "it is not judged now"
)

// grants are the questions of MachineSets about Machines that have had to wait for their turn: they were marked for remediation by what
// their Nodes said then. They may be lost at any time: what is needed is asked again. The zero value is ready for use.
type grants struct {
	mu sync.Mutex
	of map[client.ObjectKey]map[types.UID]*grant
}

// grant is one such question, and what the latest round has made of it.
type grant struct {
	// since is when it was asked first of the times that it has not been confirmed, zero for none; asked is when last.
	since, asked time.Time
	// confirmed is as of when it is known that the Machine is to be replaced: of a read of its Node, or of a round that needed none.
	confirmed time.Time
	// why is what keeps a round from it; unread means that its Node cannot be read.
	why    string
	unread bool
}

// Confirm reports whether a Machine is still unhealthy, and has that found out if it is not known. It waits for nothing: a caller that asks
// comes back a little later.
func (r *Reconciler) Confirm(cluster client.ObjectKey, machine types.UID) health.Confirmation {
	now := r.Clock.Now()
	known, fresh := r.grants.ask(cluster, machine, now)
	if fresh {
		return health.Confirmation{Done: true}
	}
	r.wake(cluster, pace)
	asking := now.Sub(known.since)
	if !known.unread && asking < unreadAfter {
		return health.Confirmation{After: max(asking, minAsk)}
	}
	return health.Confirmation{Why: cmp.Or(known.why, notJudged), After: min(max(asking, unreadAfter), maxAsk)}
}

// ask notes the question, and returns what is known and whether that is enough.
func (g *grants) ask(cluster client.ObjectKey, machine types.UID, now time.Time) (known grant, fresh bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	asked := g.get(cluster, machine)
	fresh = now.Before(asked.confirmed.Add(confirmedFor))
	switch {
	case fresh:
		asked.since = time.Time{}
	case asked.since.IsZero(), !now.Before(asked.asked.Add(confirmedFor)):
		// What was found out about an earlier question says nothing about this one.
		*asked = grant{since: now}
	}
	asked.asked = now
	return *asked, fresh
}

// get is called under mu.
func (g *grants) get(cluster client.ObjectKey, machine types.UID) *grant {
	if g.of == nil {
		g.of = map[client.ObjectKey]map[types.UID]*grant{}
	}
	if g.of[cluster] == nil {
		g.of[cluster] = map[types.UID]*grant{}
	}
	if g.of[cluster][machine] == nil {
		g.of[cluster][machine] = &grant{}
	}
	return g.of[cluster][machine]
}

// forget drops the questions of a Cluster.
func (g *grants) forget(cluster client.ObjectKey) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.of, cluster)
}

// wanted returns the Machines of a Cluster that were asked about lately, and forgets questions that nothing repeats.
func (g *grants) wanted(cluster client.ObjectKey, now time.Time) map[types.UID]bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	wanted := map[types.UID]bool{}
	for machine, asked := range g.of[cluster] {
		// One that nothing asks about any more must not be read again each time that it was confirmed.
		wanted[machine] = now.Before(asked.asked.Add(confirmedFor))
		if !wanted[machine] && !now.Before(asked.confirmed.Add(confirmedFor)) {
			delete(g.of[cluster], machine)
		}
	}
	if len(g.of[cluster]) == 0 {
		delete(g.of, cluster)
	}
	return wanted
}

// answer notes what a round has made of the questions, and that those are confirmed that it marks for remediation by their owners.
func (r *Reconciler) answer(s *round) {
	judged := map[types.UID]*target{}
	for _, t := range s.targets {
		judged[t.UID] = t
	}
	r.grants.mu.Lock()
	defer r.grants.mu.Unlock()
	for _, machine := range s.machines {
		asked := r.grants.of[s.key][machine.UID]
		if asked == nil {
			continue
		}
		t := judged[machine.UID]
		if t != nil && t.held {
			asked.why, asked.unread = t.unread, t.unread != ""
			continue
		}
		switch confirmed, why := s.confirmedAt(machine, t); {
		case why != "":
			// Its conditions change, or it is not judged now: a freeze, or Nodes that cannot be read.
			asked.confirmed, asked.why, asked.unread = time.Time{}, why, false
		case s.wanted[machine.UID]:
			*asked = grant{asked: asked.asked, confirmed: confirmed}
		}
	}
	for _, t := range s.targets {
		if toOwner, _ := s.handOver(t); toOwner && t.State == health.Unhealthy && !t.held && s.isNew(t) {
			r.grants.get(s.key, t.UID).confirmed, _ = s.confirmedAt(t.Machine, t)
		}
	}
}

// confirmedAt is as of when it is known that a Machine is to be replaced, or why it is not: t, which is nil if it is not judged, needs no
// read.
func (s *round) confirmedAt(machine *clusterv1.Machine, t *target) (at time.Time, why string) {
	switch {
	case t == nil:
		return s.now, s.unjudged(machine)
	case t.State == health.Pending && foundByOthers(machine):
		return s.now, ""
	case t.State == health.Healthy:
		return time.Time{}, "it is healthy, but its status does not say so yet"
	case t.State != health.Unhealthy:
		return time.Time{}, cmp.Or(t.Message, notJudged)
	}
	if toOwner, _ := s.handOver(t); !toOwner {
		return time.Time{}, "no MachineHealthCheck allows its replacement now"
	}
	if t.byLiveRead {
		return s.liveReads[t.UID].done, ""
	}
	return s.now, ""
}

// unjudged is why a Machine that this core does not judge is not to be replaced for what it has found of it before; "" when others judge
// it.
func (s *round) unjudged(machine *clusterv1.Machine) (why string) {
	for _, c := range s.checks {
		switch {
		case !c.selects(machine):
		case !c.paused:
			return ""
		case c.own:
			why = "MachineHealthCheck " + c.Name + " is paused"
		}
	}
	if why == "" && slices.Contains(s.abandoned, machine) {
		return "nothing judges it any more"
	}
	return why
}

// foundByOthers reports whether another controller than a MachineHealthCheck has found a Machine unhealthy.
func foundByOthers(machine *clusterv1.Machine) bool {
	found := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	return found != nil && found.Status == metav1.ConditionFalse && !slices.Contains(health.Reasons, found.Reason)
}
