package chaos

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// heldBecause is the reason why a set does not replace its unhealthy Machines; "" if it does.
func heldBecause(set *clusterv1.MachineSet) string {
	c := meta.FindStatusCondition(set.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
	if c == nil || c.Status != metav1.ConditionFalse {
		return ""
	}
	return c.Reason
}

// overRetried are the Machines that were created though as many replacements before them had failed as may.
func (h *history) overRetried(most int) []string {
	var found []string
	seen := map[types.UID]bool{}
	for _, m := range h.inOrder() {
		if m.retry > most && !seen[m.uid] {
			seen[m.uid] = true
			found = append(found, fmt.Sprintf("Machine %s came as retry %d of at most %d", m.name, m.retry, most))
		}
	}
	return found
}

// summary says what a run has tried of what bounds replacements: Machines that were retries, and how often sets said why they replace none.
func (h *history) summary() string {
	retries, counts, before := map[types.UID]bool{}, map[string]int{}, map[types.UID]string{}
	for _, m := range h.inOrder() {
		if m.retry > 0 {
			retries[m.uid] = true
		}
		if m.held != "" && m.held != before[m.uid] {
			counts[m.held]++
		}
		before[m.uid] = m.held
	}
	text := []string{fmt.Sprintf("%d retries", len(retries))}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("%s %d times", reason, counts[reason]))
	}
	return strings.Join(text, ", ")
}
