package chaos

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// replacesOnceMore lets two more Machines fall ill when all is well, one that the health check judges and one that the default policy does,
// and requires their replacement. Without that a core in which the faults have stopped all replacements would pass if no Machine was
// unhealthy at their end.
func (r *run) replacesOnceMore(ctx context.Context) error {
	s, err := r.read(ctx)
	if err != nil {
		return err
	}
	ill := sets.New[types.UID]()
	for _, checked := range []bool{true, false} {
		m, node := oneToReplace(s, checked)
		if m == nil {
			r.note("no Machine is there to be replaced, judged by the health check: %t", checked)
			continue
		}
		r.note("let the kubelet of Machine %s fall silent, judged by the health check: %t", m.Name, checked)
		r.kubelets.fallSilent(node)
		ill.Insert(m.UID)
	}
	if len(ill) == 0 {
		return errors.New("no Machine is there to be replaced")
	}
	return r.await(ctx, "those are replaced, and all is well", func(s *state) []string {
		return append(notReplaced(s, ill), r.problems(s)...)
	})
}

// oneToReplace is an available Machine of a set that the health check judges, or the default policy, with the UID of its Node; nil if
// none is there.
func oneToReplace(s *state, checked bool) (*clusterv1.Machine, types.UID) {
	nodes := s.byProviderID()
	for i := range s.machines.Items {
		m := &s.machines.Items[i]
		owner, own := metav1.GetControllerOf(m), nodes[m.Spec.ProviderID]
		if owner != nil && owner.Kind == "MachineSet" && m.DeletionTimestamp.IsZero() && (m.Labels[checkLabel] != "") == checked &&
			isTrue(m.Status.Conditions, clusterv1.MachineAvailableCondition) && len(own) == 1 {
			return m, own[0].UID
		}
	}
	return nil, ""
}

// notReplaced says why those of the Machines are there yet that are to be replaced.
func notReplaced(s *state, ill sets.Set[types.UID]) []string {
	var p list
	for i := range s.machines.Items {
		if m := &s.machines.Items[i]; ill.Has(m.UID) {
			p.add("Machine %s is ill and not replaced yet: %s; %s", m.Name,
				textOf(m, clusterv1.MachineHealthCheckSucceededCondition), textOf(m, clusterv1.MachineOwnerRemediatedCondition))
		}
	}
	return p
}

// heldBecause is why a set does not replace its unhealthy Machines; "" if it does.
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

// summary reports what a run has exercised of replacements and their bounds: Machines that have replaced others, which of them were
// retries, and how often sets reported why they replace none.
func (h *history) summary() string {
	replacements, retries, counts, before := sets.New[types.UID](), sets.New[types.UID](), map[string]int{}, map[types.UID]string{}
	for _, m := range h.inOrder() {
		if m.replaces {
			replacements.Insert(m.uid)
		}
		if m.retry > 0 {
			retries.Insert(m.uid)
		}
		if m.held != "" && m.held != before[m.uid] {
			counts[m.held]++
		}
		before[m.uid] = m.held
	}
	text := []string{fmt.Sprintf("%d replacements, %d of them retries", len(replacements), len(retries))}
	for _, reason := range slices.Sorted(maps.Keys(counts)) {
		text = append(text, fmt.Sprintf("%s %d times", reason, counts[reason]))
	}
	return strings.Join(text, ", ")
}
