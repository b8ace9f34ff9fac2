package drain

import (
	"slices"
	"strings"
)

// report turns a plan into a Result. It is called under mu.
func (n *nodeDrain) report(p *plan, c circumstances) Result {
	result := Result{
		Done:         n.done(p),
		Cordoned:     n.cordon.done,
		Listed:       n.read(),
		Evicting:     n.statuses(p.evicting),
		Terminating:  n.statuses(p.terminating),
		Blocked:      n.statuses(p.blocked),
		Completing:   n.statuses(p.completing),
		Queued:       n.statuses(p.queued),
		Later:        n.statuses(p.later),
		Abandoned:    n.statuses(p.abandoned),
		Returning:    n.statuses(p.held),
		Skipped:      len(p.staying) + p.completed,
		Evicted:      n.evictedPods(),
		Detaching:    inStage(n.handovers, detaching),
		Reattaching:  inStage(n.handovers, reattaching),
		Age:          c.now.Sub(n.began),
		NextDeadline: p.next,
	}
	for _, status := range n.statuses(p.due) {
		// What is refused time and again stays blocked in the eyes of a user.
		if status.Reason != "" {
			result.Blocked = append(result.Blocked, status)
		} else {
			result.Evicting = append(result.Evicting, status)
		}
	}
	sortStatuses(result.Evicting)
	sortStatuses(result.Blocked)
	switch {
	case c.volumes == nil:
		result.VolumesKnown = true
	case result.Listed && c.volumes.known:
		result.VolumesKnown, result.Volumes = true, c.volumes.without(p.staying)
	}
	result.VolumesError = strings.Join(slices.DeleteFunc(
		[]string{n.target.attachments.readError(), n.target.volumes.readError()}, func(s string) bool { return s == "" }), "; ")
	result.Message = n.message(p, &result)
	return result
}

// message reports what the drain waits for, in the words of its mode.
func (n *nodeDrain) message(p *plan, result *Result) string {
	switch {
	case n.request.Mode == Detach:
		if blocker := n.target.attachments.readError(); !result.Done {
			return toDetachMessage(n.node, slices.DeleteFunc(append(detachErrors(n.target.attachments.find(ofNode(n.node)), n.attempts), blocker), func(s string) bool { return s == "" }))
		}
	case n.force != nil:
		return toForcedMessage(n.node, result, len(p.detach) > 0 || p.detaching, append(n.blockers(p), detachErrors(n.target.attachments.find(ofNode(n.node)), n.attempts)...))
	case n.request.Mode != Observe:
		return toMessage(n.node, result, n.blockers(p))
	}
	return ""
}

// done reports whether the drain, as far as its mode goes, is over.
func (n *nodeDrain) done(p *plan) bool {
	switch {
	case n.force != nil:
		return p.done()
	case n.request.Mode == Observe:
		return !p.reading
	default:
		return n.cordon.done && p.done()
	}
}

// blockers are what the whole drain waits for.
func (n *nodeDrain) blockers(p *plan) []string {
	var blockers []string
	if !n.cordon.done && n.cordon.reason != "" {
		blockers = append(blockers, n.cordon.reason)
	}
	if n.podsError != "" {
		blockers = append(blockers, "cannot read the pods of the Node: "+n.podsError)
	}
	reads := []string{n.target.daemonSets.readError(), n.target.namespaces.readError()}
	if len(p.queued) > 0 || p.reading {
		reads = append(reads, n.target.attachments.readError(), n.target.volumes.readError())
	}
	for _, blocker := range reads {
		if blocker != "" {
			blockers = append(blockers, blocker)
		}
	}
	return blockers
}

// statuses names pods, with what is known of their evictions.
func (n *nodeDrain) statuses(pods []*Pod) []PodStatus {
	var statuses []PodStatus
	for _, pod := range pods {
		status := PodStatus{Pod: pod.Key}
		if known := n.attempts[pod.UID]; known != nil {
			status.PodDisruptionBudget, status.Reason = known.budget, known.reason
			n.explain(&status, pod, known)
		}
		statuses = append(statuses, status)
	}
	return statuses
}
