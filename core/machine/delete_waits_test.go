package machine_test

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machine"
)

// TestEveryWaitIsNamed: each step that waits reports what it waits for, and since when.
func TestEveryWaitIsNamed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	for _, obj := range []client.Object{f.infra, f.config, node} {
		f.setFinalizers(obj, providerFinalizer)
	}
	f.setFinalizers(f.infra, providerFinalizer, "example.com/another")
	f.annotate(f.machine, preDrainHook, ptr.To("backup"))
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	reports := func(reason string, parts ...string) {
		t.Helper()
		f.eventually(func(g Gomega, m *clusterv1.Machine) {
			g.Expect(condition(m, "Deleting")).To(Equal("True/" + reason))
			for _, part := range append(parts, " since 20") {
				g.Expect(message(m, "Deleting")).To(ContainSubstring(part))
			}
		})
	}
	reports(clusterv1.MachineDeletingWaitingForPreDrainHookReason, "1 pre-drain hook", preDrainHook+" (backup)")
	f.annotate(f.machine, preDrainHook, nil)
	reports(
		clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason,
		f.infra.GetKind(),
		f.infra.GetName(),
		"2 finalizers: example.com/another, "+providerFinalizer,
	)
	f.setFinalizers(f.infra, providerFinalizer)
	reports(clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, "1 finalizer: "+providerFinalizer)
	f.setFinalizers(f.infra)
	reports(clusterv1.MachineDeletingWaitingForBootstrapDeletionReason, f.config.GetKind(), "1 finalizer: "+providerFinalizer)
	f.setFinalizers(f.config)
	reports(clusterv1.MachineDeletingDeletingNodeReason, "Node "+node.Name, "1 finalizer: "+providerFinalizer)
	f.setFinalizers(node)
	f.leavesNothing()
}

// heldPod is a pod on the Node that a budget keeps from being evicted.
func (f *fixture) heldPod(node string) *corev1.Pod {
	f.t.Helper()
	pod := f.pod("held", node)
	core.Create(f.t, &policyv1.PodDisruptionBudget{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "budget"},
		Spec: policyv1.PodDisruptionBudgetSpec{
			MinAvailable: ptr.To(intstr.FromInt32(1)), Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "x"}},
		},
	})
	return pod
}

// attach has a volume attached to the Node.
func (f *fixture) attach(node *corev1.Node) {
	f.t.Helper()
	f.refresh(node)
	before := node.DeepCopy()
	node.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v", DevicePath: "/dev/v"}}
	f.Expect(core.Client.Status().Patch(f.t.Context(), node, client.MergeFrom(before))).To(Succeed())
}

func (f *fixture) isDeleting(reason string) {
	f.t.Helper()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Deleting")).To(Equal("True/" + reason)) })
}

func TestVolumesNeedNotBeAwaited(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.attach(f.run())
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.isDeleting(clusterv1.MachineDeletingWaitingForVolumeDetachReason)
	f.annotate(f.machine, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation, ptr.To(""))
	f.leavesNothing()
}

// TestAnUnreachableNodeIsNotAwaited: only its kubelet could say that the volumes are detached.
func TestAnUnreachableNodeIsNotAwaited(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.attach(node)
	before := node.DeepCopy()
	node.Status.Conditions[0].Status = corev1.ConditionUnknown
	f.Expect(core.Client.Status().Patch(t.Context(), node, client.MergeFrom(before))).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "NodeReady")).To(HavePrefix("Unknown/")) })
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.leavesNothing()
}

func TestAPausedDeletionRests(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.annotate(f.machine, clusterv1.PausedAnnotation, ptr.To(""))
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Paused")).To(HavePrefix("True/")) })
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.awaitsNothing()
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())
	f.refresh(node)
	f.Expect(node.Spec.Unschedulable).To(BeFalse())
	f.annotate(f.machine, clusterv1.PausedAnnotation, nil)
	f.leavesNothing()
}

// TestADeletedClusterIsDrained: the pods of a cluster that is going still end in their own time while it answers.
func TestADeletedClusterIsDrained(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	pod := f.heldPod(node.Name)
	f.Expect(core.Client.Delete(t.Context(), f.cluster())).To(Succeed())
	f.isDeleting(clusterv1.MachineDeletingDrainingNodeReason)
	f.refresh(f.infra)
	f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())
	f.Expect(core.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0))).To(Succeed())
	f.leavesNothing()
	f.eventuallyGone(f.cluster())
}

func (f *fixture) cluster() *clusterv1.Cluster {
	return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "c"}}
}

// TestTargetThatIsGone covers target clusters that never answer again.
func TestTargetThatIsGone(t *testing.T) {
	core.GracePeriod = 2 * time.Second
	core.Restart(t)
	t.Cleanup(func() { core.GracePeriod = 0; core.Restart(t) })

	t.Run("its Cluster is being deleted with its control plane: steps in it are skipped after the grace period", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		f.run()
		plane := f.controlPlane(map[string]any{})
		f.severTarget()
		f.Expect(core.Client.Delete(t.Context(), f.cluster())).To(Succeed())
		f.eventuallyGone(f.machine)
		f.eventuallyGone(f.infra)
		f.setFinalizers(plane)
		f.eventuallyGone(f.cluster())
	})
	t.Run("its Cluster stays: each step ends with its timeout, and what is left behind is reported", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		f.machine.Spec.Deletion = clusterv1.MachineDeletionSpec{
			NodeDrainTimeoutSeconds: ptr.To[int32](
				1,
			),
			NodeVolumeDetachTimeoutSeconds: ptr.To[int32](1),
			NodeDeletionTimeoutSeconds:     ptr.To[int32](1),
		}
		node := f.run()
		f.severTarget()
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
		f.eventuallyGone(f.machine) // Each stage lasts a second, which is too short to be looked for; the last one has its event.
		f.eventuallyGone(f.infra)
		f.Expect(f.eventuallyRecorded(machine.NodeDeletionTimedOutEvent).Note).To(ContainSubstring(node.Name))
	})
}

// TestDelete_CAPI9692_ClusterDeletedAndSilent_SkipsDrain: the Cluster has nothing but a kubeconfig, the drain has no timeout, and the
// target has been silent for the grace period.
func TestDelete_CAPI9692_ClusterDeletedAndSilent_SkipsDrain(t *testing.T) {
	core.GracePeriod = 2 * time.Second
	core.Restart(t)
	t.Cleanup(func() { core.GracePeriod = 0; core.Restart(t) })
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](0)
	node := f.run()
	f.severTarget()
	f.Expect(core.Client.Delete(t.Context(), f.cluster())).To(Succeed())
	f.eventuallyGone(f.machine)
	f.eventuallyGone(f.infra)
	f.eventuallyGone(f.cluster())
	f.Expect(f.eventuallyRecorded(machine.DrainSkippedEvent).Note).To(ContainSubstring("Node " + node.Name + " is not drained"))
}

// TestNodeThatMayNotBeDeleted: the attempts continue without holding a worker, the wait has a name, and the start of the
// timeout survives a restart.
func TestNodeThatMayNotBeDeleted(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Deletion.NodeDeletionTimeoutSeconds = ptr.To[int32](0)
	node := f.run()
	allow := f.forbidDeletionOf(node)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.isDeleting(clusterv1.MachineDeletingDeletingNodeReason)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(message(m, "Deleting")).
			To(And(ContainSubstring(node.Name), ContainSubstring("cannot be deleted since"), ContainSubstring("Invalid")))
	})
	f.refresh(f.machine)
	started := f.machine.Annotations[machine.NodeDeletionStartAnnotation]
	f.Expect(started).NotTo(BeEmpty())

	core.Restart(t)
	f.eventuallyConnected()
	f.Consistently(func() string { f.refresh(f.machine); return f.machine.Annotations[machine.NodeDeletionStartAnnotation] }).
		WithTimeout(3 * time.Second).Should(Equal(started))
	allow()
	f.leavesNothing()
}

// forbidDeletionOf has the API server refuse to delete the Node, until the returned function is called.
func (f *fixture) forbidDeletionOf(node *corev1.Node) (allow func()) {
	f.t.Helper()
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				ResourceNames: []string{node.Name},
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Delete},
					Rule:       admissionv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: "for the test"}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: node.Name},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName:        node.Name,
			ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
		},
	}
	core.Create(f.t, policy)
	core.Create(f.t, binding)
	f.Eventually(func() error { return core.Client.Delete(f.t.Context(), node, client.DryRunAll) }).WithTimeout(timeout).ShouldNot(Succeed())
	return func() {
		f.Expect(core.Client.Delete(f.t.Context(), binding)).To(Succeed())
		f.Expect(core.Client.Delete(f.t.Context(), policy)).To(Succeed())
	}
}

// TestNodesThatAreNotTheMachines covers Nodes that must survive a Machine.
func TestNodesThatAreNotTheMachines(t *testing.T) {
	t.Parallel()
	t.Run("the recorded name is another machine's now", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node := f.run()
		f.Expect(core.Client.Delete(t.Context(), node)).To(Succeed())
		f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "NodeReady")).To(HavePrefix("False/")) })
		other := core.Node(t, f.machine.Name, f.providerID()+"-other", true)
		f.eventuallyCached(other.Name)
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
		f.eventuallyGone(f.machine)
		f.refresh(other)
		f.Expect(other.DeletionTimestamp).To(BeNil())
		f.Expect(other.Spec.Unschedulable).To(BeFalse())
	})
	t.Run("several Nodes have its provider ID: the linked one goes", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node := f.run()
		double := core.Node(t, f.machine.Name+"-double", f.providerID(), true)
		f.eventuallyCached(double.Name)
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
		f.eventuallyGone(f.machine)
		f.eventuallyGone(node)
		f.refresh(double)
		f.Expect(double.DeletionTimestamp).To(BeNil())
	})
	t.Run("several Nodes have its provider ID, none is linked: they stay, and it is reported", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		f.createOwned()
		f.bootstrapped()
		for i := range 2 {
			f.eventuallyConnected()
			core.Node(t, fmt.Sprintf("%s-%d", f.machine.Name, i), f.providerID(), true)
			f.eventuallyCached(fmt.Sprintf("%s-%d", f.machine.Name, i))
		}
		f.provision()
		f.eventually(func(g Gomega, m *clusterv1.Machine) {
			g.Expect(message(m, "NodeReady")).To(ContainSubstring("all have the provider ID"))
		})
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
		f.eventuallyGone(f.machine)
		f.Expect(f.eventuallyRecorded(machine.NodesLeftEvent).Note).To(ContainSubstring(f.machine.Name + "-0, " + f.machine.Name + "-1"))
	})
}
