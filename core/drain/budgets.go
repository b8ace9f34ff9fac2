package drain

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

// unsatisfiable is true when a budget will not allow any eviction while it and its pods stay as they are. The rule is that of the
// machine-controller-manager: the controller of budgets has observed its present spec, it has pods, all of them are healthy, none
// is being evicted, and yet it allows no disruption.
func unsatisfiable(b budget) bool {
	s := &b.Status
	return s.ObservedGeneration == b.Generation && s.ExpectedPods > 0 && s.CurrentHealthy >= s.ExpectedPods &&
		len(s.DisruptedPods) == 0 && s.DisruptionsAllowed == 0
}

// covers reports whether a budget is about a pod.
func covers(b budget, pod *Pod) bool {
	selector, err := metav1.LabelSelectorAsSelector(b.Spec.Selector)
	return err == nil && pod.Key.Namespace == b.Namespace && selector.Matches(labels.Set(pod.Labels))
}

// budgetChanged has pods whose eviction a budget has blocked retried at once when it is gone or allows evictions, as many as it
// allows. That a budget becomes unsatisfiable, or satisfiable again, is worth a report.
func (n *nodeDrain) budgetChanged(before, after budget) bool {
	current, allowed := after, len(n.pods)
	if after == nil {
		current = before
	} else {
		allowed = int(after.Status.DisruptionsAllowed)
	}
	changed := before == nil || after == nil || unsatisfiable(before) != unsatisfiable(after)
	for uid, a := range n.attempts {
		pod := n.pods[uid]
		if allowed > 0 && pod != nil && !a.inFlight && a.failures > 0 && pod.Key.Namespace == current.Namespace && a.budget == current.Name {
			a.retryAt, changed = time.Time{}, true
			allowed--
		}
	}
	return changed
}

// explain adds to a refusal what follows from the PodDisruptionBudgets themselves.
func (n *nodeDrain) explain(status *PodStatus, pod *Pod, a *attempt) {
	if b, found := n.target.budgets.get(pod.Key.Namespace + "/" + a.budget); found && unsatisfiable(b) {
		status.Unsatisfiable = true
		status.Reason = fmt.Sprintf("it allows no disruption although all %d pods are healthy", b.Status.ExpectedPods)
	}
	if !a.several {
		return
	}
	var names []string
	for _, b := range n.target.budgets.find(pod.Key.Namespace) {
		if covers(b, pod) {
			names = append(names, b.Name)
		}
	}
	slices.Sort(names)
	status.Unsatisfiable = true
	status.Reason = "several PodDisruptionBudgets select it, so the API server refuses every eviction; leave one of them"
	if len(names) > 0 {
		status.Reason += ": " + strings.Join(names, ", ")
	}
}
