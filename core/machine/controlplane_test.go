package machine_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// master brings a Machine to Running that is one of a control plane, with a pod on its Node that a budget holds.
func (f *fixture) master() (node *corev1.Node, pod *corev1.Pod) {
	f.t.Helper()
	node = f.run()
	before := f.machine.DeepCopy()
	metav1.SetMetaDataLabel(&f.machine.ObjectMeta, clusterv1.MachineControlPlaneLabel, "")
	f.Expect(core.Client.Patch(f.t.Context(), f.machine, client.MergeFrom(before))).To(Succeed())
	return node, f.heldPod(node.Name)
}

// another makes a further control plane Machine, which never comes up.
func (f *fixture) another() {
	f.t.Helper()
	core.Create(f.t, &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "another", Labels: map[string]string{clusterv1.MachineControlPlaneLabel: ""}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("none")}, InfrastructureRef: coretest.Ref("Nowhere", "n"),
		},
	})
}

// controlPlane gives the Cluster a control plane object, which a finalizer holds.
func (f *fixture) controlPlane(status map[string]any) *unstructured.Unstructured {
	f.t.Helper()
	plane := coretest.Object(coretest.Kind(coretest.ControlPlane, f.contract), f.namespace, "p")
	plane.SetFinalizers([]string{providerFinalizer})
	core.Create(f.t, plane)
	core.SetStatus(f.t, plane, status)
	cluster := f.cluster()
	f.refresh(cluster)
	before := cluster.DeepCopy()
	cluster.Spec.ControlPlaneRef = coretest.Ref(plane.GetKind(), plane.GetName())
	f.Expect(core.Client.Patch(f.t.Context(), cluster, client.MergeFrom(before))).To(Succeed())
	return plane
}

// goesAtOnce expects the Machine to go without a step in the target cluster.
func (f *fixture) goesAtOnce(node *corev1.Node, pod *corev1.Pod) {
	f.t.Helper()
	f.eventuallyGone(f.machine)
	f.eventuallyGone(f.infra)
	f.eventuallyGone(f.config)
	f.refresh(node)
	f.Expect(node.DeletionTimestamp).To(BeNil())
	f.refresh(pod)
	f.Expect(pod.DeletionTimestamp).To(BeNil())
}

// TestControlPlaneThatGoes covers Machines that the API server of their target cluster runs on.
func TestControlPlaneThatGoes(t *testing.T) {
	t.Parallel()
	t.Run("the Cluster is being deleted", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node, pod := f.master()
		f.another()
		f.Expect(core.Client.Delete(t.Context(), f.cluster())).To(Succeed())
		f.goesAtOnce(node, pod)
		f.Expect(node.Spec.Unschedulable).To(BeFalse())
		f.eventuallyGone(f.cluster())
	})
	t.Run("it is the last one", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node, pod := f.master()
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
		f.goesAtOnce(node, pod)
	})
	t.Run("another one stays, until the control plane is deleted", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node, pod := f.master()
		f.another()
		plane := f.controlPlane(nil)
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
		f.isDeleting(clusterv1.MachineDeletingDrainingNodeReason)
		f.refresh(f.infra)
		f.Expect(f.infra.GetDeletionTimestamp()).To(BeNil())
		f.Expect(core.Client.Delete(t.Context(), plane)).To(Succeed())
		f.goesAtOnce(node, pod)
		f.setFinalizers(plane)
	})
	t.Run("another one stays, until it begins to go", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		node, pod := f.master()
		f.another()
		other := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: f.namespace, Name: "another"}}
		f.setFinalizers(other, clusterv1.MachineFinalizer, providerFinalizer)
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
		f.isDeleting(clusterv1.MachineDeletingDrainingNodeReason)
		f.awaitsNothing()
		f.Expect(core.Client.Delete(t.Context(), other)).To(Succeed())
		f.goesAtOnce(node, pod)
		f.setFinalizers(other)
	})
	t.Run("the control plane runs elsewhere: it is a Machine like any other", func(t *testing.T) {
		f := newFixture(t, version.V1Beta2)
		_, pod := f.master()
		plane := f.controlPlane(map[string]any{"externalManagedControlPlane": true})
		f.Expect(core.Client.Delete(t.Context(), plane)).To(Succeed())
		f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
		f.isDeleting(clusterv1.MachineDeletingDrainingNodeReason)
		f.Expect(core.Client.Delete(t.Context(), pod, client.GracePeriodSeconds(0))).To(Succeed())
		f.leavesNothing()
		f.setFinalizers(plane)
	})
}

// TestWorkerOfAControlPlaneThatIsGone: a target cluster that does not answer and has no control plane any more is not
// waited for beyond the grace period, though its Cluster stays.
func TestWorkerOfAControlPlaneThatIsGone(t *testing.T) {
	core.GracePeriod = 2 * time.Second
	core.Restart(t)
	t.Cleanup(func() { core.GracePeriod = 0; core.Restart(t) })
	f := newFixture(t, version.V1Beta2)
	f.run()
	plane := f.controlPlane(nil)
	f.severTarget()
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.isDeleting(clusterv1.MachineDeletingDrainingNodeReason)
	f.awaitsNothing()
	f.Expect(core.Client.Delete(t.Context(), plane)).To(Succeed())
	f.setFinalizers(plane)
	f.eventuallyGone(plane)
	f.eventuallyGone(f.machine)
	f.eventuallyGone(f.infra)
}
