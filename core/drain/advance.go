package drain

import (
	"time"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
)

// changed is called, without mu, when something has happened that may call for action or be worth a report.
func (n *nodeDrain) changed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	n.notifyIfChanged(n.advance())
}

// advance sends what is due, schedules its next call for when more is due, and returns how far the drain
// is. It is called under mu.
func (n *nodeDrain) advance() Result {
	now := n.now()
	if n.request.Mode != Observe && n.request.Mode != Detach {
		n.sendCordon(now)
	}
	n.joinNeeded()
	current := &plan{reading: true}
	c := n.circumstances(now)
	switch {
	case n.force != nil:
		current = n.advanceForced(c)
	case n.read():
		current = n.advanceNormal(c)
	}
	if !n.cordon.done && !n.cordon.inFlight && !n.cordon.retryAt.IsZero() {
		current.at(n.cordon.retryAt)
	}
	n.wakeAt(current.next, now)
	return n.report(current, c)
}

// joinNeeded has read what the drain needs besides the pods. It is called under mu.
func (n *nodeDrain) joinNeeded() {
	if n.force != nil || !Unreachable(n.request.Node) {
		n.target.attachments.join(n)
	}
	if n.request.Mode != Detach && len(n.request.Node.Status.VolumesAttached)+len(n.target.attachments.find(ofNode(n.node))) > 0 {
		n.target.volumes.join(n)
	}
	if n.needsNamespaces() {
		n.target.namespaces.join(n)
	}
	if n.needsDaemonSets() {
		n.target.daemonSets.join(n)
	}
}

func (n *nodeDrain) needsNamespaces() bool {
	return n.request.Rules != nil && n.request.Rules.namespaces
}

func (n *nodeDrain) needsDaemonSets() bool {
	for _, pod := range n.pods {
		if pod.DaemonSet != "" && !pod.Finished {
			return true
		}
	}
	return false
}

// read reports whether everything has been read that decisions about pods rest on.
func (n *nodeDrain) read() bool {
	return n.listed && (!n.needsNamespaces() || n.target.namespaces.known()) && (!n.needsDaemonSets() || n.target.daemonSets.known())
}

func (n *nodeDrain) advanceNormal(c circumstances) *plan {
	if c.volumes != nil && c.volumes.known {
		n.moveHandovers(c)
		c.handovers = n.handovers
	}
	current := makePlan(n.pods, n.attempts, c)
	if n.request.Mode == Observe {
		current.next = time.Time{}
		return current
	}
	if n.cordon.done {
		n.sendEvictions(current.pods[due])
	}
	return current
}

// circumstances gathers what decisions rest on.
func (n *nodeDrain) circumstances(now time.Time) circumstances {
	c := circumstances{
		now:         now,
		unreachable: Unreachable(n.request.Node),
		daemonSets:  func(uid types.UID) bool { return len(n.target.daemonSets.find(string(uid))) > 0 },
		rules:       n.request.Rules,
		namespaces: func(name string) labels.Set {
			if namespace, found := n.target.namespaces.get(name); found {
				return namespace.Labels
			}
			return nil
		},
		returnInterval: n.drainer.options.ReturnInterval,
	}
	if !c.unreachable {
		c.volumes = gatherVolumes(n.request.Node, n.target.attachments, n.target.volumes)
	}
	return c
}
