package machine_test

import (
	"strings"
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

// eventuallyRecorded waits for an event about the Machine.
func (f *fixture) eventuallyRecorded(reason string) *eventsv1.Event {
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
	}).WithTimeout(timeout).Should(Succeed())
	return found
}

// TestFailureDomainFromBothPlaces: the status of the infrastructure goes to the status of the Machine, its spec, as the
// older contract has it, to the spec.
func TestFailureDomainFromBothPlaces(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta1)
	f.machine.Spec.FailureDomain = "asked-for"
	f.createOwned()
	core.SetSpec(t, f.infra, map[string]any{"failureDomain": "chosen"})
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Spec.FailureDomain).To(Equal("chosen"))
		g.Expect(m.Status.FailureDomain).To(Equal("zone-a"))
	})
}

// TestInterruptible: the label is set and removed with the status of the infrastructure object.
func TestInterruptible(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	for _, interruptible := range []bool{true, false} {
		f.refresh(f.infra)
		core.SetStatus(t, f.infra, map[string]any{"interruptible": interruptible})
		f.Eventually(func() bool {
			f.refresh(node)
			_, ok := node.Labels[clusterv1.InterruptibleLabel]
			return ok
		}).WithTimeout(timeout).Should(Equal(interruptible))
	}
}

// TestCertificatesExpiry: for control plane Machines alone; the Machine's annotation goes before that of its config.
func TestCertificatesExpiry(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
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
	t.Parallel()
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

// TestNodeReplaced: a machine that joins again under another name is the same Machine with another Node, if the infrastructure
// reports that name. Upstream's core sets the reference once and for all.
func TestNodeReplaced(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.Expect(core.Client.Delete(t.Context(), node)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("False/NodeDeleted"))
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeDeleted"))
	})
	f.eventuallyRecorded("NodeDeleted")
	f.hostName(f.machine.Name + "-again")
	core.Node(t, f.machine.Name+"-again", f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.NodeRef.Name).To(Equal(f.machine.Name + "-again"))
		g.Expect(condition(m, "Ready")).To(Equal("True/Ready"))
	})
	f.eventuallyRecorded("NodeReplaced")
}

// TestMetadataOnTheNode: what is removed from the Machine is removed from the Node, and nothing else is.
func TestMetadataOnTheNode(t *testing.T) {
	t.Parallel()
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
	f.Eventually(labels).WithTimeout(timeout).Should(HaveKey("node-role.kubernetes.io/worker"))
	f.Eventually(annotations).WithTimeout(timeout).Should(HaveKeyWithValue("node.cluster.x-k8s.io/note", "y"))
	f.patchMachine(func(m *clusterv1.Machine) {
		delete(m.Labels, "node-role.kubernetes.io/worker")
		delete(m.Annotations, "node.cluster.x-k8s.io/note")
	})
	f.Eventually(labels).WithTimeout(timeout).ShouldNot(HaveKey("node-role.kubernetes.io/worker"))
	f.Eventually(annotations).WithTimeout(timeout).ShouldNot(HaveKey("node.cluster.x-k8s.io/note"))
	f.Expect(labels()).To(HaveKeyWithValue("node.cluster.x-k8s.io/foreign", "x"))
}

// TestReadinessOverTime: a gate counts in Ready, and Available comes by its deadline without any event.
func TestReadinessOverTime(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.MinReadySeconds = ptr.To[int32](10) // Time enough to see that it waits.
	f.machine.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "Storage"}}
	f.createOwned()
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
	}).WithTimeout(timeout).Should(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Available")).To(Equal("False/WaitingForMinReadySeconds"))
		g.Expect(message(m, "Available")).To(HavePrefix("Available at "))
	})
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Available")).To(Equal("True/Available")) })
}

// TestFactsThatTheAPIRefuses: one value that the API of Machines refuses does not freeze all the others.
func TestFactsThatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta1)
	f.createOwned()
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	core.SetSpec(t, f.infra, map[string]any{"providerID": f.providerID(), "failureDomain": strings.Repeat("z", 300)})
	status := coretest.Provisioned(f.contract)
	status["addresses"] = []any{
		map[string]any{"type": "PodIP", "address": "10.1.0.1"}, map[string]any{"type": "InternalIP", "address": "10.0.0.1"},
		map[string]any{"type": "Hostname", "address": strings.Repeat("h", 300)},
	}
	// The older form of conditions and failures allows less than the newer.
	status["failureMessage"] = strings.Repeat("ä", 9000)
	core.SetStatus(t, f.infra, status)
	core.Node(t, f.machine.Name, f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.NodeRef.Name).To(Equal(f.machine.Name))
		g.Expect(m.Status.Addresses).To(ConsistOf(clusterv1.MachineAddress{Type: "InternalIP", Address: "10.0.0.1"}))
		g.Expect(m.Status.FailureDomain).To(BeEmpty())
		g.Expect(condition(m, "InfrastructureReady")).To(HavePrefix("False/"), "by its failure")
	})
	f.refresh(f.infra)
	core.SetStatus(t, f.infra, map[string]any{"failureMessage": ""})
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Phase).To(Equal("Running"))
		g.Expect(condition(m, "Available")).To(Equal("True/Available"))
		g.Expect(message(m, "InfrastructureReady")).To(And(
			HavePrefix("MachineV1Beta1 "+f.machine.Name+" reports values that the API does not accept"),
			ContainSubstring(`the type "PodIP" is unknown`), ContainSubstring("failureDomain: "), ContainSubstring("longer than 256 characters")))
	})
	f.refresh(f.infra)
	core.SetSpec(t, f.infra, map[string]any{"failureDomain": "zone-a"})
	core.SetStatus(t, f.infra, map[string]any{"addresses": []any{}})
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(message(m, "InfrastructureReady")).To(BeEmpty())
		g.Expect(m.Spec.FailureDomain).To(Equal("zone-a"))
	})
}

// TestProviderIDThatTheAPIRefuses: without it there is no Node, so that is a wrong reference.
func TestProviderIDThatTheAPIRefuses(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	core.SetSpec(t, f.infra, map[string]any{"providerID": "stand-in:///" + strings.Repeat("x", 600)})
	core.SetStatus(t, f.infra, coretest.Provisioned(f.contract))
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("Unknown/InvalidConditionReported"))
		g.Expect(message(m, "InfrastructureReady")).To(ContainSubstring("spec.providerID must be of 512 characters at most"))
	})
}

// TestEventsOfAWholeLife: `kubectl describe machine` shows bootstrap data, infrastructure, Node, drain and deletion, each once
// and by two events, also over a restart.
func TestEventsOfAWholeLife(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	joined := f.eventuallyRecorded("SuccessfulSetNodeRef")
	f.Expect(joined.Type).To(Equal("Normal"))
	f.Expect(joined.Note).
		To(MatchRegexp(`^Bootstrap data ready after \d+s, infrastructure ` + f.providerID() + ` provisioned after \d+s, Node ` + node.Name +
			` joined after \d+s$`))

	core.Restart(t)
	f.eventuallyConnected()
	f.awaitsNothing()
	f.pod("a", node.Name)
	f.pod("b", node.Name)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyGone(f.machine)
	gone := f.eventuallyRecorded("SuccessfulDelete")
	f.Expect(gone.Note).To(MatchRegexp(`^Node ` + node.Name + ` is drained \(2 Pods evicted\)\. Deleted: MachineV1Beta2 ` + f.machine.Name +
		`, ConfigV1Beta2 ` + f.machine.Name + `, Node ` + node.Name + `\. The deletion took (\d+m)?\d+s$`))
	list := &eventsv1.EventList{}
	f.Expect(core.Client.List(t.Context(), list, client.InNamespace(f.namespace))).To(Succeed())
	counts := map[string]int{}
	for i := range list.Items {
		if list.Items[i].Regarding.Name == f.machine.Name {
			counts[list.Items[i].Reason]++
		}
	}
	f.Expect(counts).To(Equal(map[string]int{"SuccessfulSetNodeRef": 1, "SuccessfulDelete": 1}), "each once, also over a restart")
}
