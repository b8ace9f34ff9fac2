package machines

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

func TestAvailable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Available(machine("serves"))).To(BeTrue())
	g.Expect(Available(machine("goes", deleting))).To(BeFalse(), "it serves still, and soon no more")
	g.Expect(Available(machine("not yet", unavailable))).To(BeFalse())
	g.Expect(Available(machine("updated", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	}))).To(BeFalse())
}

func TestUnhealthyByEachOfItsSigns(t *testing.T) {
	g := NewWithT(t)
	g.Expect(unhealthy(machine("well"))).To(BeFalse())
	for _, kind := range []string{clusterv1.MachineNodeHealthyCondition, clusterv1.MachineHealthCheckSucceededCondition} {
		g.Expect(unhealthy(machine("unhealthy", func(m *clusterv1.Machine) { setConditions(m, conditions.False(kind, "Bad", "")) }))).To(BeTrue(), kind)
		g.Expect(unhealthy(machine("unknown", func(m *clusterv1.Machine) { setConditions(m, conditions.Unknown(kind, "Bad", "")) }))).To(BeFalse(), kind)
	}
	g.Expect(unhealthy(machine("no Node", func(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }))).To(BeTrue())
}
