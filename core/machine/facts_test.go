package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	eventsv1 "k8s.io/api/events/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// patchMachine changes the fixture's Machine by a merge patch.
func (f *fixture) patchMachine(change func(*clusterv1.Machine)) {
	f.t.Helper()
	f.refresh(f.machine)
	before := f.machine.DeepCopy()
	change(f.machine)
	f.Expect(core.Client.Patch(f.t.Context(), f.machine, client.MergeFrom(before))).To(Succeed())
}

// eventuallyTold waits for an event about the Machine.
func (f *fixture) eventuallyTold(reason string) *eventsv1.Event {
	f.t.Helper()
	var found *eventsv1.Event
	f.Eventually(func(g Gomega) {
		list := &eventsv1.EventList{}
		g.Expect(core.Client.List(f.t.Context(), list, client.InNamespace(f.namespace))).To(Succeed())
		for i := range list.Items {
			if list.Items[i].Regarding.Name == f.machine.Name && list.Items[i].Reason == reason {
				found = &list.Items[i]
			}
		}
		g.Expect(found).NotTo(BeNil(), "no event %s", reason)
	}).WithTimeout(patience).Should(Succeed())
	return found
}

// TestFailureDomainFromBothPlaces: the status of the infrastructure goes to the status of the Machine, its spec, as the
// older contract has it, to the spec.
func TestFailureDomainFromBothPlaces(t *testing.T) {
	f := newFixture(t, version.V1Beta1)
	f.machine.Spec.FailureDomain = "asked-for"
	f.createBorn()
	core.SetSpec(t, f.infra, map[string]any{"failureDomain": "chosen"})
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Spec.FailureDomain).To(Equal("chosen"))
		g.Expect(m.Status.FailureDomain).To(Equal("zone-a"))
	})
}

// TestInterruptible: the label comes and goes with what the infrastructure says.
func TestInterruptible(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	for _, interruptible := range []bool{true, false} {
		f.refresh(f.infra)
		core.SetStatus(t, f.infra, map[string]any{"interruptible": interruptible})
		f.Eventually(func() bool {
			f.refresh(node)
			_, ok := node.Labels[clusterv1.InterruptibleLabel]
			return ok
		}).WithTimeout(patience).Should(Equal(interruptible))
	}
}

// TestCertificatesExpiry: for control plane Machines alone; the Machine's annotation goes before that of its config.
func TestCertificatesExpiry(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	f.createBorn()
	first, second := time.Date(2027, 1, 1, 0, 0, 0, 0, time.UTC), time.Date(2028, 1, 1, 0, 0, 0, 0, time.UTC)
	expiry := func(want time.Time) {
		f.t.Helper()
		f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.CertificatesExpiryDate.UTC()).To(Equal(want)) })
	}
	const key = clusterv1.MachineCertificatesExpiryDateAnnotation
	f.annotate(f.config, key, ptr.To(first.Format(time.RFC3339)))
	f.awaitsNothing()
	expiry(time.Time{})
	f.patchMachine(func(m *clusterv1.Machine) { m.Labels[clusterv1.MachineControlPlaneLabel] = "" })
	expiry(first)
	f.annotate(f.machine, key, ptr.To(second.Format(time.RFC3339)))
	expiry(second)
	// Upstream's core fails such a Machine for ever.
	f.annotate(f.machine, key, ptr.To("next year"))
	expiry(time.Time{})
	f.awaitsNothing()
	f.annotate(f.machine, key, nil)
	expiry(first)
	f.annotate(f.config, key, nil)
	expiry(time.Time{})
}

// TestUpdating: an external updater holds the annotation up.
func TestUpdating(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	f.run()
	f.annotate(f.machine, clusterv1.UpdateInProgressAnnotation, ptr.To(""))
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Phase).To(Equal("Updating"))
		g.Expect(condition(m, "Updating")).To(Equal("True/InPlaceUpdating"))
		g.Expect(condition(m, "Ready")).To(Equal("False/NotReady"))
		g.Expect(condition(m, "Available")).To(Equal("False/NotReady"))
	})
	f.annotate(f.machine, clusterv1.UpdateInProgressAnnotation, nil)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Phase).To(Equal("Running"))
		g.Expect(condition(m, "Ready")).To(Equal("True/Ready"))
	})
}

// TestNodeReplaced: a machine that joins anew under another name is the same Machine with another Node. Upstream's core
// sets the reference once and for all.
func TestNodeReplaced(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.Expect(core.Client.Delete(t.Context(), node)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("False/NodeDeleted"))
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeDeleted"))
	})
	f.eventuallyTold("NodeDeleted")
	core.Node(t, f.machine.Name+"-again", f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.NodeRef.Name).To(Equal(f.machine.Name + "-again"))
		g.Expect(condition(m, "Ready")).To(Equal("True/Ready"))
	})
	f.eventuallyTold("NodeReplaced")
}

// TestMetadataOnTheNode: what is removed from the Machine is removed from the Node, and nothing else is.
func TestMetadataOnTheNode(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.refresh(node)
	before := node.DeepCopy()
	metav1.SetMetaDataLabel(&node.ObjectMeta, "node.cluster.x-k8s.io/foreign", "x")
	f.Expect(core.Client.Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
	labels := func() map[string]string { f.refresh(node); return node.Labels }
	annotations := func() map[string]string { f.refresh(node); return node.Annotations }
	f.patchMachine(func(m *clusterv1.Machine) {
		m.Labels["node-role.kubernetes.io/worker"] = ""
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "node.cluster.x-k8s.io/note", "y")
	})
	f.Eventually(labels).WithTimeout(patience).Should(HaveKey("node-role.kubernetes.io/worker"))
	f.Eventually(annotations).WithTimeout(patience).Should(HaveKeyWithValue("node.cluster.x-k8s.io/note", "y"))
	f.patchMachine(func(m *clusterv1.Machine) {
		delete(m.Labels, "node-role.kubernetes.io/worker")
		delete(m.Annotations, "node.cluster.x-k8s.io/note")
	})
	f.Eventually(labels).WithTimeout(patience).ShouldNot(HaveKey("node-role.kubernetes.io/worker"))
	f.Eventually(annotations).WithTimeout(patience).ShouldNot(HaveKey("node.cluster.x-k8s.io/note"))
	f.Expect(labels()).To(HaveKeyWithValue("node.cluster.x-k8s.io/foreign", "x"))
}

// TestReadinessOverTime: a gate counts in Ready, and Available comes by its deadline without any event.
func TestReadinessOverTime(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.MinReadySeconds = ptr.To[int32](2)
	f.machine.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Storage"}}
	f.createBorn()
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.provision()
	core.Node(t, f.machine.Name, f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Phase).To(Equal("Running"))
		g.Expect(condition(m, "Ready")).To(Equal("Unknown/ReadyUnknown"))
		g.Expect(message(m, "Ready")).To(ContainSubstring("Storage"))
		g.Expect(m.Status.ObservedGeneration).To(Equal(m.Generation))
		for _, condition := range m.Status.Conditions {
			g.Expect(condition.ObservedGeneration).To(Equal(m.Generation), condition.Type)
		}
	})
	f.Eventually(func() error {
		f.refresh(f.machine)
		f.machine.Status.Conditions = append(f.machine.Status.Conditions, metav1.Condition{
			Type: "Storage", Status: metav1.ConditionTrue, Reason: "Attached", LastTransitionTime: metav1.Now(),
		})
		return core.Client.Status().Update(t.Context(), f.machine)
	}).WithTimeout(patience).Should(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Available")).To(Equal("False/WaitingForMinReadySeconds"))
		g.Expect(message(m, "Available")).To(HavePrefix("Available at "))
	})
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Available")).To(Equal("True/Available")) })
}
