package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestRestartWritesNothing: a core that starts anew finds everything as it should be, and leaves it so.
func TestRestartWritesNothing(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.awaitsNothing()
	f.refresh(f.machine)
	f.refresh(node)
	writes, reconciles := len(core.Requests.Writes("/"+f.machine.Name)), coretest.Reconciles("machine")

	core.Restart(t)

	f.Eventually(func() int { return coretest.Reconciles("machine") - reconciles }).WithTimeout(patience).Should(BeNumerically(">", 0))
	f.eventuallyConnected()
	f.awaitsNothing()
	f.Expect(core.Requests.Writes("/" + f.machine.Name)[writes:]).To(BeEmpty())
	machine, before := &clusterv1.Machine{}, f.machine.ResourceVersion
	f.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(f.machine), machine)).To(Succeed())
	f.Expect(machine.ResourceVersion).To(Equal(before))
	again := &corev1.Node{}
	f.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(node), again)).To(Succeed())
	f.Expect(again.ResourceVersion).To(Equal(node.ResourceVersion))
}

// TestDrainSurvivesARestart: what a drain has reached is in the cluster, not in the process.
func TestDrainSurvivesARestart(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	pod := f.pod("held", node.Name)
	f.setFinalizers(pod, providerFinalizer)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(message(m, "Deleting")).To(ContainSubstring("held")) })
	f.refresh(f.machine)
	started := f.machine.Status.Deletion.NodeDrainStartTime

	core.Restart(t)

	f.eventuallyConnected()
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil(), "the machine is kept while the pod is there")
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Deletion.NodeDrainStartTime.Equal(&started)).To(BeTrue(), "the timeout goes on counting")
	})
	f.setFinalizers(pod)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}

// TestTargetOutOfReach: a Machine waits for a target cluster that does not answer, and says so.
func TestTargetOutOfReach(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	key := client.ObjectKey{Namespace: f.namespace, Name: "c"}
	core.Connections.Remove(key)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/DrainingNode"))
		g.Expect(message(m, "Deleting")).To(HavePrefix("Waiting for the connection to the target cluster"))
	})
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())

	core.Connections.Ensure(t.Context(), key)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}
