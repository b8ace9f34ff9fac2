package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// beside is a further Machine in the namespace and Cluster of another one; nothing of it exists yet.
func (f *fixture) beside(name string) *fixture {
	other := *f
	other.machine = &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: f.namespace + "-" + name, Finalizers: []string{clusterv1.MachineFinalizer}},
		Spec: clusterv1.MachineSpec{
			ClusterName:       "c",
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("mine")},
			InfrastructureRef: coretest.Ref(coretest.Kind(coretest.Machine, f.contract), f.namespace+"-"+name),
		},
	}
	other.config, other.infra = nil, nil
	return &other
}

// provisionAs has infrastructure of the Machine's own provisioned that reports a provider ID.
func (f *fixture) provisionAs(id string) {
	f.t.Helper()
	f.infra = f.child(coretest.Machine)
	core.SetSpec(f.t, f.infra, map[string]any{"providerID": id})
	core.SetStatus(f.t, f.infra, coretest.Provisioned(f.contract))
}

// staysRunning checks that Machine, Node and infrastructure are untouched.
func (f *fixture) staysRunning(node *corev1.Node) {
	f.t.Helper()
	f.refresh(node)
	f.Expect(node.DeletionTimestamp).To(BeNil())
	f.Expect(node.Spec.Unschedulable).To(BeFalse(), "its drain has not begun")
	f.Expect(node.Annotations).To(HaveKeyWithValue(clusterv1.MachineAnnotation, f.machine.Name))
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())
	f.refresh(f.machine)
	f.Expect(f.machine.Status.NodeRef.Name).To(Equal(node.Name))
	f.Expect(condition(f.machine, "Ready")).To(Equal("True/Ready"))
}

// TestAMistakenMachineTakesNothingFromAnother: Machine B refers to the infrastructure object of A. It is refused, and when
// it goes, nothing of A goes with it, nor is anything of A's waited for.
func TestAMistakenMachineTakesNothingFromAnother(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name string
		// claimed is the provider ID that an older core has copied to B.
		claimed bool
		remove  func(f *fixture)
	}{
		{name: "it is deleted", remove: func(f *fixture) { f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed()) }},
		{name: "it is deleted, and an older core has copied the provider ID", claimed: true,
			remove: func(f *fixture) { f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed()) }},
		{name: "a health check has found it unhealthy, and its owner remediates it", claimed: true, remove: (*fixture).remediate},
		{name: "A's infrastructure has a finalizer", remove: func(f *fixture) {
			f.setFinalizers(f.infra, providerFinalizer)
			f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed())
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newFixture(t, version.V1Beta2)
			node := a.run()
			b := a.beside("b")
			b.machine.Spec.InfrastructureRef = a.machine.Spec.InfrastructureRef
			if test.claimed {
				b.machine.Spec.ProviderID = a.providerID()
			}
			b.createMachine()
			b.eventually(func(g Gomega, m *clusterv1.Machine) {
				g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/OwnedElsewhere"))
			})
			b.infra = a.infra
			test.remove(b)
			b.eventuallyGone(b.machine)
			a.awaitsNothing()
			a.staysRunning(node)
		})
	}
}

// remediate does what a health check and the owner of a Machine do together.
func (f *fixture) remediate() {
	f.t.Helper()
	f.annotate(f.machine, clusterv1.RemediateMachineAnnotation, ptr.To(""))
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		before := m.DeepCopy()
		for _, reported := range []metav1.Condition{
			{Type: clusterv1.MachineHealthCheckSucceededCondition, Reason: clusterv1.MachineHealthCheckUnhealthyMachineReason},
			{Type: clusterv1.MachineOwnerRemediatedCondition, Reason: clusterv1.MachineSetMachineRemediationMachineDeletingReason},
		} {
			reported.Status = metav1.ConditionFalse
			meta.SetStatusCondition(&m.Status.Conditions, reported)
		}
		g.Expect(core.Client.Status().Patch(f.t.Context(), m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).
			To(Succeed())
	})
	f.Expect(core.Client.Delete(f.t.Context(), f.machine)).To(Succeed())
}

// TestAMachineOfThatNameBefore: an object whose owner is a Machine of the same name and another UID is not this Machine's.
func TestAMachineOfThatNameBefore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	before := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(),
		Kind:       "Machine",
		Name:       f.machine.Name,
		UID:        "before",
		Controller: ptr.To(true),
	}
	f.eventuallyConnected()
	f.machine.Spec.Bootstrap = clusterv1.Bootstrap{DataSecretName: ptr.To("mine")}
	f.infra = coretest.Object(coretest.Kind(coretest.Machine, f.contract), f.namespace, f.machine.Name, before)
	f.infra.Object["spec"] = map[string]any{"providerID": f.providerID()}
	f.infra.SetFinalizers([]string{providerFinalizer})
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	core.Create(t, f.infra)
	core.SetStatus(t, f.infra, coretest.Provisioned(f.contract))
	f.createMachine()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/OwnedElsewhere"))
		g.Expect(message(m, "InfrastructureReady")).To(And(ContainSubstring("an earlier Machine of that name"), ContainSubstring("UID before")))
		g.Expect(m.Spec.ProviderID).To(BeEmpty())
	})
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventuallyGone(f.machine)
	f.refresh(node)
	f.Expect(node.DeletionTimestamp).To(BeNil())
	f.setFinalizers(f.infra)
}

// TestInfrastructureWithoutControllerWhenTheMachineIsDeleted: it is deleted, as nothing else claims it, but nothing that it
// reports is trusted.
func TestInfrastructureWithoutControllerWhenTheMachineIsDeleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.eventuallyConnected()
	f.annotatePaused()
	f.machine.Finalizers = []string{clusterv1.MachineFinalizer}
	f.createMachine()
	f.createObjects()
	f.provision()
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	f.eventuallyCached(node.Name)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.annotate(f.machine, clusterv1.PausedAnnotation, nil)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(f.infra)
	f.refresh(node)
	f.Expect(node.DeletionTimestamp).To(BeNil())
	f.Expect(node.Spec.Unschedulable).To(BeFalse())
}

func (f *fixture) annotatePaused() {
	f.machine.Annotations = map[string]string{clusterv1.PausedAnnotation: ""}
}

// settles waits for a steady state, and checks that nothing writes the Node after that, and that Machines stay steady, but for their
// deadlines.
func (f *fixture) settles(node *corev1.Node) {
	f.t.Helper()
	f.awaitsNothing()
	f.refresh(node)
	version := node.ResourceVersion
	f.awaitsNothing()
	f.refresh(node)
	f.Expect(node.ResourceVersion).To(Equal(version), "nothing writes the Node")
}

// TestAClaimInTheSpecTakesNothing: Machine B has A's provider ID in its spec, but no infrastructure that reports it.
func TestAClaimInTheSpecTakesNothing(t *testing.T) {
	t.Parallel()
	a := newFixture(t, version.V1Beta2)
	node := a.run()
	a.awaitsNothing()
	reconciles := core.Reconciles(a.namespace)
	b := a.beside("b")
	b.machine.Spec.ProviderID = a.providerID()
	b.createMachine()
	b.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeReady")).To(Equal("False/NodeOfAnotherMachine"))
		g.Expect(message(m, "NodeReady")).To(And(ContainSubstring("Machine "+a.namespace+"/"+a.machine.Name), ContainSubstring(a.providerID())))
		g.Expect(m.Status.NodeRef.Name).To(BeEmpty())
		g.Expect(condition(m, "Ready")).To(Equal("False/NotReady"))
	})
	b.eventuallyRecorded("NodeOfAnotherMachine")
	a.settles(node)
	a.Expect(core.Reconciles(a.namespace)-reconciles).To(BeNumerically("<", 15), "no loop")
	a.staysRunning(node)

	b.Expect(core.Client.Delete(t.Context(), b.machine)).To(Succeed())
	b.eventuallyGone(b.machine)
	a.awaitsNothing()
	a.staysRunning(node)
}

// TestAClaimOfAPausedMachineTakesNothing: Machine B is older than A, runs, and is paused when its spec gets A's provider ID, so
// that nothing corrects it. What is known of A's infrastructure is no more than that it was provisioned once.
func TestAClaimOfAPausedMachineTakesNothing(t *testing.T) {
	t.Parallel()
	b := newFixture(t, version.V1Beta2)
	b.run()
	a := b.beside("a")
	a.createMachine()
	a.provisionAs(a.providerID())
	node := core.Node(t, a.machine.Name, a.providerID(), true)
	a.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name)) })
	b.annotate(b.machine, clusterv1.PausedAnnotation, ptr.To(""))
	b.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Paused")).To(Equal("True/Paused")) })
	b.refresh(b.machine)
	before := b.machine.DeepCopy()
	b.machine.Spec.ProviderID = a.providerID()
	b.Expect(core.Client.Patch(t.Context(), b.machine, client.MergeFrom(before))).To(Succeed())
	a.settles(node)
	a.setFinalizers(a.infra)
	a.Expect(core.Client.Delete(t.Context(), a.infra)).To(Succeed())
	a.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDeleted"))
		g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name), "its Node was not taken")
		g.Expect(condition(m, "NodeReady")).To(Equal("True/NodeReady"))
	})
	a.Expect(core.Client.Delete(t.Context(), a.machine)).To(Succeed())
	a.eventuallyGone(a.machine)
	a.eventuallyGone(node)
}

// TestInfrastructureThatIsRecreated: its provider ID is taken over when it is provisioned, and not before.
func TestInfrastructureThatIsRecreated(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDeleted"))
	})
	f.infra = f.child(coretest.Machine)
	core.SetSpec(t, f.infra, map[string]any{"providerID": f.providerID() + "-again"})
	core.SetStatus(t, f.infra, map[string]any{"addresses": []any{map[string]any{"type": "InternalIP", "address": "10.0.0.2"}}})
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/NotReady"))
	})
	f.awaitsNothing()
	f.refresh(f.machine)
	f.Expect(f.machine.Spec.ProviderID).To(Equal(f.providerID()))
	f.Expect(f.machine.Status.Addresses).To(ConsistOf(HaveField("Address", "10.0.0.1")))
	f.Expect(f.machine.Status.NodeRef.Name).To(Equal(node.Name))
	core.SetStatus(t, f.infra, coretest.Provisioned(f.contract))
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Spec.ProviderID).To(Equal(f.providerID() + "-again")) })
}
