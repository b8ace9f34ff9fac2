package scenario

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestBudgetIsViolatedOnceItWasSatisfied(t *testing.T) {
	type state struct{ healthy, desired int32 }
	for name, test := range map[string]struct {
		states   []state
		violated bool
	}{
		"not satisfied yet":          {[]state{{0, 0}, {0, 4}, {3, 4}}, false},
		"satisfied":                  {[]state{{3, 4}, {4, 4}, {6, 4}, {4, 4}}, false},
		"violated":                   {[]state{{4, 4}, {3, 4}}, true},
		"violated and whole again":   {[]state{{4, 4}, {3, 4}, {6, 4}}, true},
		"demands more than is there": {[]state{{6, 4}, {6, 7}}, true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := &Watch{budgets: map[string]bool{}}
			for _, s := range test.states {
				w.budgetChanged(&policyv1.PodDisruptionBudget{
					ObjectMeta: metav1.ObjectMeta{Name: "b"},
					Status:     policyv1.PodDisruptionBudgetStatus{CurrentHealthy: s.healthy, DesiredHealthy: s.desired},
				}, false)
			}
			g.Expect(w.Violation() != nil).To(Equal(test.violated))
		})
	}
}

func TestExtremes(t *testing.T) {
	g := NewWithT(t)
	now := metav1.Now()
	machine := func(uid string, available bool, deleted *metav1.Time) *clusterv1.Machine {
		m := runningMachine(func(m *clusterv1.Machine) { m.UID, m.DeletionTimestamp = types.UID(uid), deleted })
		if available {
			m.Status.Conditions = []metav1.Condition{{Type: clusterv1.AvailableCondition, Status: metav1.ConditionTrue}}
		}
		return m
	}
	w := &Watch{
		machines: map[string]*clusterv1.Machine{},
		nodes:    map[string]*corev1.Node{},
		served:   map[string]bool{},
		timeline: newTimeline(),
	}
	w.machineChanged(machine("a", true, nil), false)
	w.machineChanged(machine("b", true, nil), false)
	w.ResetExtremes()
	g.Expect(w.Extremes()).To(Equal(Extremes{Most: 2, Fewest: 2, FewestStaying: 2}))
	w.machineChanged(machine("c", false, nil), false)
	w.machineChanged(machine("c", true, nil), false)
	g.Expect(w.Extremes()).To(Equal(Extremes{Most: 3, Fewest: 2, FewestStaying: 2}))
	w.machineChanged(machine("a", true, &now), false)
	w.machineChanged(machine("a", true, &now), true)
	w.machineChanged(machine("b", false, nil), false)
	g.Expect(w.Extremes()).To(Equal(Extremes{Most: 3, Fewest: 1, FewestStaying: 2}), "a Machine that is not available for a moment stays")
	w.machineChanged(machine("b", false, &now), false)
	g.Expect(w.Extremes()).To(Equal(Extremes{Most: 3, Fewest: 1, FewestStaying: 1}), "one that is being deleted does not")
}
