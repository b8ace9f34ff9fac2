package drain

import (
	"slices"
	"strings"

	"millwright.dev/core/drain/handover"
)

// report turns a plan into a Result. It is called under mu.
func (n *nodeDrain) report(p *plan, c circumstances) Result {
	result := Result{
		Done:        n.done(p),
		Cordoned:    n.cordon.done,
		Listed:      n.listed,
		Evicting:    n.statuses(p.evicting),
		Terminating: n.statuses(p.terminating),
		Blocked:     n.statuses(p.blocked),
		Completing:  n.statuses(p.completing),
		Queued:      n.statuses(p.queued),
		Later:       n.statuses(p.later),
		Abandoned:   n.statuses(p.abandoned),
		Returning:   n.statuses(p.held),
		LeftOwners:  n.returning.owners(c, p.left),

		ReturningOwners: n.returning.owners(c, p.due, p.evicting, p.terminating, p.blocked, p.queued, p.later, p.held),

		Skipped:      len(p.staying) + p.completed,
		Evicted:      n.evictedPods(),
		Detaching:    handover.In(n.handovers, handover.Detaching),
		Reattaching:  handover.In(n.handovers, handover.Reattaching),
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
	case n.listed && c.volumes.known:
		result.VolumesKnown, result.Volumes = true, c.volumes.without(p.staying)
	}
	result.VolumesProblem = strings.Join(slices.DeleteFunc(
		[]string{n.target.attachments.problem(), n.target.volumes.problem()}, func(s string) bool { return s == "" }), "; ")
	switch {
	case n.request.Mode == Detach:
		if problem := n.target.attachments.problem(); !result.Done {
			result.Message = toDetachMessage(n.node, slices.DeleteFunc(append(n.detachProblems(), problem), func(s string) bool { return s == "" }))
		}
	case n.force != nil:
		result.Message = toForcedMessage(n.node, &result, len(p.detach) > 0 || p.detaching, append(n.problems(p), n.detachProblems()...))
	case n.request.Mode != Observe:
		result.Message = toMessage(n.node, &result, append(n.problems(p), n.returning.inWords(result.ReturningOwners)...))
	}
	return result
}

// done says whether the drain, as far as its mode goes, is over.
func (n *nodeDrain) done(p *plan) bool {
	switch {
	case n.force != nil:
		return p.done()
	case n.request.Mode == Observe:
		return n.listed
	default:
		return n.listed && n.cordon.done && p.done()
	}
}

// problems says what keeps the whole drain from going on.
func (n *nodeDrain) problems(p *plan) []string {
	var problems []string
	if problem := n.target.budgets.problem(); problem != "" && len(p.held) > 0 {
		problems = append(problems, problem)
	}
	if !n.cordon.done && n.cordon.reason != "" {
		problems = append(problems, n.cordon.reason)
	}
	if n.readProblem != "" {
		problems = append(problems, "cannot read the pods of the Node: "+n.readProblem)
	}
	if len(p.undecided) > 0 {
		reason, _ := n.target.daemonSets.problem()
		for _, problem := range []string{
			reason, n.target.namespaces.problem(), n.target.attachments.problem(), n.target.volumes.problem(),
		} {
			if problem != "" {
				problems = append(problems, problem)
			}
		}
	}
	return problems
}

// statuses names pods, with what is known of their evictions.
func (n *nodeDrain) statuses(pods []*Pod) []PodStatus {
	attempts := n.attempts
	if n.force != nil {
		attempts = n.force.pods
	}
	var statuses []PodStatus
	for _, pod := range pods {
		status := PodStatus{Pod: pod.Key}
		if known := attempts[pod.UID]; known != nil {
			status.PodDisruptionBudget, status.Reason = known.budget, known.reason
			n.explain(&status, pod, known)
		}
		statuses = append(statuses, status)
	}
	return statuses
}
