package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"
)

// unsatisfiable is true when a budget will not allow any eviction while it and its pods stay as they are. The rule is that of the
// machine-controller-manager: the controller of budgets has observed its present spec, it has pods, all of them are healthy, none
// is being evicted, and yet it allows no disruption.
func (b *budget) unsatisfiable() bool {
	return b.current && b.expected > 0 && b.healthy >= b.expected && b.disrupted == 0 && b.allowed == 0
}

// covers reports whether a budget is about a pod; named is the budget that the API server has named.
func (b *budget) covers(pod *Pod, named string) bool {
	if pod.Key.Namespace != b.key.Namespace {
		return false
	}
	return named == b.key.Name || named == "" && b.selector.Matches(labels.Set(pod.Labels))
}

// budgetChanged has pods whose eviction a budget has blocked retried at once when it allows evictions, as many as it
// allows. That a budget becomes unsatisfiable, or satisfiable again, is worth a report.
func (n *nodeDrain) budgetChanged(before, after *budget) bool {
	changed := after == nil
	if after == nil {
		after = &budget{key: before.key, selector: before.selector, allowed: int32(len(n.pods))}
	}
	if before != nil && before.unsatisfiable() != after.unsatisfiable() {
		changed = true
	}
	allowed := after.allowed
	for uid, a := range n.attempts {
		if allowed <= 0 || a.inFlight || a.failures == 0 {
			continue
		}
		if pod := n.pods[uid]; pod != nil && after.covers(pod, a.budget) {
			a.retryAt = time.Time{}
			allowed--
			changed = true
		}
	}
	return changed || before == nil && after.unsatisfiable()
}

// explain adds to a refusal what follows from the PodDisruptionBudgets themselves.
func (n *nodeDrain) explain(status *PodStatus, pod *Pod, a *attempt) {
	if known, found := n.target.budgets.get(pod.Key.Namespace + "/" + a.budget); found && known.unsatisfiable() {
		status.Unsatisfiable = true
		status.Reason = fmt.Sprintf("it allows no disruption although all %d pods are healthy", known.expected)
	}
	if !a.several {
		return
	}
	var names []string
	for _, b := range n.target.budgets.find(pod.Key.Namespace) {
		if b.covers(pod, "") {
			names = append(names, b.key.Name)
		}
	}
	slices.Sort(names)
	status.Unsatisfiable = true
	status.Reason = "several PodDisruptionBudgets select it, so the API server refuses every eviction; leave one of them"
	if len(names) > 0 {
		status.Reason += ": " + strings.Join(names, ", ")
	}
}
