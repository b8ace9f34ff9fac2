package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/inframachine"
	"millwright.dev/contracts/version"
	"millwright.dev/core/machine"
	"millwright.dev/test/coretest"
)

// TestDelete_CAPI10710_ForegroundDeletion_WaitsForDrain: whichever object is deleted first, also by a garbage collector in the foreground,
// a budget that allows no disruption holds the deletion, and nothing is left once it allows one.
func TestDelete_CAPI10710_ForegroundDeletion_WaitsForDrain(t *testing.T) {
	t.Parallel()
	foreground := client.PropagationPolicy(metav1.DeletePropagationForeground)
	for name, first := range map[string]func(*fixture) []client.Object{
		"infrastructure first":   func(f *fixture) []client.Object { return []client.Object{f.infra, f.machine} },
		"bootstrap config first": func(f *fixture) []client.Object { return []client.Object{f.config, f.machine} },
		"both first":             func(f *fixture) []client.Object { return []client.Object{f.infra, f.config, f.machine} },
		"Machine first":          func(f *fixture) []client.Object { return []client.Object{f.machine, f.config, f.infra} },
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, version.V1Beta2)
			node := f.run()
			pod := f.heldPod(node.Name)
			f.setFinalizers(f.infra, providerFinalizer)
			for _, object := range first(f) {
				f.Expect(core.Client.Delete(t.Context(), object, foreground)).To(Succeed())
			}
			f.draining("1 pod left", "held", "since ")
			f.refresh(node)
			f.Expect(node.Spec.Unschedulable).To(BeTrue())
			f.refresh(pod)
			f.Expect(pod.DeletionTimestamp).To(BeNil(), "nothing is evicted")
			f.endForeground()
			f.draining("1 pod left")

			f.Expect(core.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0))).To(Succeed())
			f.isDeleting(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
			f.setFinalizers(f.infra)
			f.leavesNothing()
		})
	}
}

// endForeground removes the finalizer of the garbage collector, which does not run here.
func (f *fixture) endForeground() {
	f.t.Helper()
	for _, object := range []client.Object{f.machine, f.infra, f.config} {
		err := core.Client.Get(f.t.Context(), client.ObjectKeyFromObject(object), object)
		f.Expect(client.IgnoreNotFound(err)).To(Succeed())
		before := object.DeepCopyObject().(client.Object)
		var rest []string
		for _, finalizer := range object.GetFinalizers() {
			if finalizer != metav1.FinalizerDeleteDependents {
				rest = append(rest, finalizer)
			}
		}
		if object.SetFinalizers(rest); err == nil {
			f.Expect(client.IgnoreNotFound(core.Client.Patch(f.t.Context(), object, client.MergeFrom(before)))).To(Succeed())
		}
	}
}

// TestDelete_CAPI985_HooksHoldWhateverIsDeletedFirst: a pre-drain and a pre-terminate hook, with the infrastructure deleted first.
func TestDelete_CAPI985_HooksHoldWhateverIsDeletedFirst(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.run()
	f.setFinalizers(f.infra, providerFinalizer)
	f.annotate(f.machine, preDrainHook, ptr.To(""))
	f.annotate(f.machine, preTerminateHook, ptr.To(""))
	f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.isDeleting(clusterv1.MachineDeletingWaitingForPreDrainHookReason)
	f.annotate(f.machine, preDrainHook, nil)
	f.isDeleting(clusterv1.MachineDeletingWaitingForPreTerminateHookReason)
	f.annotate(f.machine, preTerminateHook, nil)
	f.isDeleting(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
	f.setFinalizers(f.infra)
	f.leavesNothing()
}

// TestDelete_InfrastructureGone_DrainsReadyNode: a user has removed the finalizers of the infrastructure object, or the provider of
// others has let it go. Once the Node is not ready any more nothing is drained.
func TestDelete_InfrastructureGone_DrainsReadyNode(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.heldPod(node.Name)
	f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
	f.eventuallyGone(f.infra)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.draining("held")
	f.refresh(node)
	before := node.DeepCopy()
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	f.Expect(core.Client.Status().Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
	f.leavesNothing()
}

// TestInfrastructureReady_CNFFeatures1986_ObjectBeingDeleted_NamesTheRemedy: the Machine is not deleted with its infrastructure
// object, and says what the
// provider may do.
func TestInfrastructureReady_CNFFeatures1986_ObjectBeingDeleted_NamesTheRemedy(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.setFinalizers(f.infra, providerFinalizer)
	f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/" + machine.ObjectBeingDeletedReason))
		g.Expect(message(m, "InfrastructureReady")).To(And(ContainSubstring("is being deleted since 20"),
			ContainSubstring("delete this Machine to drain its Node"), ContainSubstring("may terminate the instance without a drain")))
	})
	f.Expect(f.eventuallyRecorded(machine.ObjectBeingDeletedReason).Type).To(Equal(corev1.EventTypeWarning))

	f.refresh(f.infra)
	status := coretest.Provisioned(f.contract)
	status["conditions"] = []any{map[string]any{
		"type": "Ready", "status": "False", "reason": inframachine.WaitingForMachineDeletionReason, "message": "held",
		"lastTransitionTime": "2026-01-01T00:00:00Z",
	}}
	core.SetStatus(t, f.infra, status)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/" + inframachine.WaitingForMachineDeletionReason))
		g.Expect(message(m, "InfrastructureReady")).To(Equal("held"))
		g.Expect(m.DeletionTimestamp).To(BeNil())
	})
	f.refresh(node)
	f.Expect(node.Spec.Unschedulable).To(BeFalse())
	f.setFinalizers(f.infra)
}

// TestDelete_MachineOfAnExport_IsDrained: Machine and infrastructure object were created again from an export, without a status and with
// the owner references of the earlier ones, and are deleted before a core has seen anything of them. The Node is older than both.
func TestDelete_MachineOfAnExport_IsDrained(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	f.eventuallyConnected()
	node := core.Node(t, "ip-"+f.machine.Name, f.providerID(), true)
	f.refresh(node)
	node.Annotations = map[string]string{
		clusterv1.MachineAnnotation: f.machine.Name, clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: f.namespace,
	}
	f.Expect(core.Client.Update(t.Context(), node)).To(Succeed())
	f.eventuallyCached(node.Name)
	f.heldPod(node.Name)

	core.RestartAfter(t, func() {
		earlier := clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: f.machine.Name, UID: types.UID("earlier")}}
		f.createObjects(*metav1.NewControllerRef(&earlier, clusterv1.GroupVersion.WithKind("Machine")))
		core.SetSpec(t, f.infra, map[string]any{"providerID": f.providerID()})
		f.setFinalizers(f.infra, providerFinalizer)
		f.machine.Finalizers = []string{clusterv1.MachineFinalizer}
		f.machine.Spec.ProviderID = f.providerID()
		core.Create(t, f.machine)
		f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	})
	f.draining("held")
	f.Expect(core.Client.Delete(t.Context(), &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "held"}},
		client.GracePeriodSeconds(0))).To(Succeed())
	f.isDeleting(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
	f.setFinalizers(f.infra)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(node)
}

// TestDelete_ClusterGone_HoldsTheInstance: nothing reaches the Node any more, and its Pods run on.
func TestDelete_ClusterGone_HoldsTheInstance(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	f.run()
	core.RestartAfter(t, func() {
		cluster := f.cluster()
		f.setFinalizers(cluster)
		f.Expect(core.Client.Delete(t.Context(), cluster)).To(Succeed())
		f.eventuallyGone(cluster)
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	})
	f.draining("Cluster c does not exist, and the instance stays until 20")
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())
	f.annotate(f.machine, machine.ForceDeletionAnnotation, ptr.To("true"))
	f.eventuallyGone(f.machine)
	f.eventuallyGone(f.infra)
}
