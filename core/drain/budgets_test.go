package drain

import (
	"testing"

	. "github.com/onsi/gomega"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestUnsatisfiable: a budget that allows nothing is reported only when waiting cannot change that.
func TestUnsatisfiable(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*policyv1.PodDisruptionBudget)
		want   bool
	}{
		"all healthy, and none may be missing": {func(*policyv1.PodDisruptionBudget) {}, true},
		"more healthy than expected":           {func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 4 }, true},
		"its spec is not observed yet":         {func(b *policyv1.PodDisruptionBudget) { b.Generation = 3 }, false},
		"no pods":                              {func(b *policyv1.PodDisruptionBudget) { b.Status.ExpectedPods, b.Status.CurrentHealthy = 0, 0 }, false},
		"a pod is not healthy":                 {func(b *policyv1.PodDisruptionBudget) { b.Status.CurrentHealthy = 2 }, false},
		"an eviction is under way":             {func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptedPods = map[string]metav1.Time{"p": {}} }, false},
		"a disruption is allowed":              {func(b *policyv1.PodDisruptionBudget) { b.Status.DisruptionsAllowed = 1 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			pdb := &policyv1.PodDisruptionBudget{ObjectMeta: metav1.ObjectMeta{Generation: 2}}
			pdb.Status = policyv1.PodDisruptionBudgetStatus{ObservedGeneration: 2, ExpectedPods: 3, CurrentHealthy: 3}
			test.change(pdb)
			NewWithT(t).Expect(unsatisfiable(pdb)).To(Equal(test.want))
		})
	}
}
