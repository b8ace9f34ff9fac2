package machines

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	. "millwright.dev/test/coretest/builder"
)

func TestAvailable(t *testing.T) {
	g := NewWithT(t)
	g.Expect(Available(Machine("serves"))).To(BeTrue())
	g.Expect(Available(Machine("goes", Deleting))).To(BeFalse(), "it serves still, and soon no more")
	g.Expect(Available(Machine("not yet", Unavailable))).To(BeFalse())
	g.Expect(Available(Machine("updated", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	}))).To(BeFalse())
}

// TestServing: what is being deleted or updated serves no more soon, whatever its conditions say yet; so it is for sets and deployments.
func TestServing(t *testing.T) {
	g := NewWithT(t)
	updated := Machine("updated", func(m *clusterv1.Machine) {
		m.Annotations = map[string]string{clusterv1.UpdateInProgressAnnotation: ""}
	})
	ready, available := Serving([]*clusterv1.Machine{Machine("serves"), Machine("not yet", Unavailable), Machine("goes", Deleting), updated})
	g.Expect(ready).To(BeEquivalentTo(2))
	g.Expect(available).To(BeEquivalentTo(1))
}

func TestUnhealthyByEachOfItsSigns(t *testing.T) {
	g := NewWithT(t)
	g.Expect(unhealthy(Machine("well"))).To(BeFalse())
	for _, kind := range []string{clusterv1.MachineNodeHealthyCondition, clusterv1.MachineHealthCheckSucceededCondition} {
		g.Expect(unhealthy(Machine("unhealthy", func(m *clusterv1.Machine) { SetConditions(m, conditions.False(kind, "Bad", "")) }))).
			To(BeTrue(), kind)
		g.Expect(unhealthy(Machine("unknown", func(m *clusterv1.Machine) { SetConditions(m, conditions.Unknown(kind, "Bad", "")) }))).
			To(BeFalse(), kind)
	}
	g.Expect(unhealthy(Machine("no Node", func(m *clusterv1.Machine) { m.Status.NodeRef = clusterv1.MachineNodeReference{} }))).To(BeTrue())
}
