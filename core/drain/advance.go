package drain

import (
	"context"
	"slices"
	"time"
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
	var current *plan
	c := n.circumstances(now)
	switch {
	case n.force != nil:
		current = n.advanceForced(c)
	case n.listed:
		current = n.advanceNormal(c)
	default:
		current = &plan{}
	}
	if !n.cordon.done && !n.cordon.inFlight && !n.cordon.retryAt.IsZero() {
		current.at(n.cordon.retryAt)
	}
	n.wakeAt(current.next, now)
	return n.report(current, c)
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
	n.readDaemonSets(current, c.now)
	if n.cordon.done {
		n.sendEvictions(current.due)
	}
	return current
}

// circumstances gathers what decisions rest on.
func (n *nodeDrain) circumstances(now time.Time) circumstances {
	c := circumstances{
		now:            now,
		unreachable:    Unreachable(n.request.Node),
		daemonSets:     n.daemonSet,
		rules:          n.request.Rules,
		namespaces:     n.target.namespaces.get,
		behaviour:      n.request.Behaviour,
		returnInterval: n.drainer.options.ReturnInterval,
	}
	if !c.unreachable {
		c.volumes = gatherVolumes(n.request.Node, n.target.attachments, n.target.volumes)
	}
	return c
}

// daemonSet looks the DaemonSet of a pod up, and remembers for this drain that it exists.
func (n *nodeDrain) daemonSet(pod *Pod) (exists, known bool) {
	if n.inUse[pod.DaemonSet] {
		return true, true
	}
	exists, known = n.target.daemonSets.exists(pod.DaemonSet, pod.FirstSeen, n.now())
	if exists {
		n.inUse[pod.DaemonSet] = true
	}
	return exists, known
}

// readDaemonSets starts a read of the DaemonSets where a decision waits for them, and continues after it.
func (n *nodeDrain) readDaemonSets(current *plan, now time.Time) {
	ofDaemonSets := func(pod *Pod) bool { return pod.DaemonSet != "" }
	if n.stopped || !slices.ContainsFunc(current.undecided, ofDaemonSets) {
		return
	}
	if n.target.daemonSets.await(now, n.changed) {
		// The reading serves other drains too, so it does not end with this one, but by its own timeout.
		n.drainer.spawn(func() {
			n.target.daemonSets.read(context.Background(), n.target, &n.drainer.options)
		})
	}
	if _, retryAt := n.target.daemonSets.readError(); !retryAt.IsZero() {
		current.at(retryAt)
	}
}
