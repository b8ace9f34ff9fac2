package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
)

// TestTwoInfrastructureObjectsWithOneProviderID: the Machine that was linked first keeps the Node, and both report it. When it
// no longer exists the other may have it.
func TestTwoInfrastructureObjectsWithOneProviderID(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		place func(*fixture)
	}{
		{"of one Cluster", func(*fixture) {}},
		{"of another core's watch filter", func(b *fixture) { b.machine.Labels = map[string]string{clusterv1.WatchLabel: "other"} }},
		{"of another Cluster with the same target", func(b *fixture) {
			core.Cluster(b.t, b.namespace, "d")
			b.machine.Spec.ClusterName = "d"
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newFixture(t, version.V1Beta2)
			node := a.run()
			b := a.beside("b")
			test.place(b)
			b.createMachine()
			b.provisionAs(a.providerID())
			b.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "InfrastructureReady")).To(HavePrefix("True/"))
				g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeOfAnotherMachine"))
				g.Expect(message(m, "NodeReady")).To(ContainSubstring("Machine " + a.namespace + "/" + a.machine.Name))
				g.Expect(m.Status.NodeRef.Name).To(BeEmpty())
			})
			a.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "NodeReady")).To(Equal("True/NodeReady"))
				g.Expect(message(m, "NodeReady")).To(ContainSubstring("Machine " + b.namespace + "/" + b.machine.Name))
			})
			a.eventuallyRecorded("ProviderIDContested")
			a.settles(node)
			a.staysRunning(node)

			b.Expect(core.Client.Delete(t.Context(), b.machine)).To(Succeed())
			b.eventuallyGone(b.machine)
			a.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(message(m, "NodeReady")).To(BeEmpty()) })
			a.staysRunning(node)
		})
	}
}

// TestTheOtherMachineGetsTheNodeWhenTheFirstIsGone: the Machine that lost is enqueued when the winner is deleted. What its infrastructure
// reports now counts more than what that of the other has reported before it went, so the Node is left to it.
func TestTheOtherMachineGetsTheNodeWhenTheFirstIsGone(t *testing.T) {
	t.Parallel()
	a := newFixture(t, version.V1Beta2)
	node := a.run()
	b := a.beside("b")
	b.createMachine()
	b.provisionAs(a.providerID())
	b.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeOfAnotherMachine"))
	})
	a.Expect(core.Client.Delete(t.Context(), a.machine)).To(Succeed())
	a.eventuallyGone(a.machine)
	b.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name)) })
	b.refresh(node)
	b.Expect(node.DeletionTimestamp).To(BeNil())
}

// TestALinkFromAnOlderCore: two Machines that an older core has linked with one Node. The one that lost gives up the link.
func TestALinkFromAnOlderCore(t *testing.T) {
	t.Parallel()
	a := newFixture(t, version.V1Beta2)
	node := a.run()
	b := a.beside("b")
	b.machine.Spec.ProviderID = a.providerID()
	b.annotatePaused()
	b.createMachine()
	before := b.machine.DeepCopy()
	b.machine.Status.NodeRef.Name = node.Name
	b.Expect(core.Client.Status().Patch(t.Context(), b.machine, client.MergeFrom(before))).To(Succeed())
	b.annotate(b.machine, clusterv1.PausedAnnotation, nil)
	b.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.NodeRef.Name).To(BeEmpty())
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeOfAnotherMachine"))
	})
	a.settles(node)
	a.staysRunning(node)
}
