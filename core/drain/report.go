package drain

// report turns a plan into a Result. It is called under mu.
func (n *nodeDrain) report(p *plan) Result {
	result := Result{
		Done:         n.listed && n.cordon.done && p.done(),
		Cordoned:     n.cordon.done,
		Listed:       n.listed,
		Evicting:     n.statuses(p.evicting),
		Terminating:  n.statuses(p.terminating),
		Blocked:      n.statuses(p.blocked),
		Completing:   n.statuses(p.completing),
		Later:        n.statuses(p.later),
		Skipped:      p.skipped,
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
	result.Message = toMessage(n.node, &result, n.problems(p))
	return result
}

// problems says what keeps the whole drain from going on.
func (n *nodeDrain) problems(p *plan) []string {
	var problems []string
	if !n.cordon.done && n.cordon.reason != "" {
		problems = append(problems, n.cordon.reason)
	}
	if n.readProblem != "" {
		problems = append(problems, "cannot read the pods of the Node: "+n.readProblem)
	}
	if reason, _ := n.target.daemonSets.problem(); reason != "" && len(p.undecided) > 0 {
		problems = append(problems, reason)
	}
	return problems
}

// statuses names pods, with what is known of their evictions.
func (n *nodeDrain) statuses(pods []*Pod) []PodStatus {
	var statuses []PodStatus
	for _, pod := range pods {
		status := PodStatus{Pod: pod.Key}
		if known := n.attempts[pod.UID]; known != nil {
			status.PodDisruptionBudget, status.Reason = known.budget, known.reason
		}
		statuses = append(statuses, status)
	}
	return statuses
}
