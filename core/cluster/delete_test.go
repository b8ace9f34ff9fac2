package cluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// heldBy is a finalizer by which a test keeps an object.
const heldBy = "standin.example.com/held"

// standaloneMachine is a Machine without an owner that runs nowhere, held by a finalizer.
func standaloneMachine(namespace, name string, labels map[string]string) *clusterv1.Machine {
	return &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, Labels: labels, Finalizers: []string{heldBy}},
		Spec: clusterv1.MachineSpec{
			ClusterName: "c", Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("data")}, InfrastructureRef: coretest.Ref("Nowhere", "n"),
		},
	}
}

var controlPlaneLabels = map[string]string{clusterv1.MachineControlPlaneLabel: "", clusterv1.ClusterNameLabel: "c"}

// release takes the test's finalizer from an object.
func release(t *testing.T, obj client.Object) {
	t.Helper()
	NewWithT(t).Eventually(func() error {
		if err := core.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj); err != nil {
			return err
		}
		controllerutil.RemoveFinalizer(obj, heldBy)
		return core.Client.Update(t.Context(), obj)
	}).Should(Succeed())
}

func isDeleted(t *testing.T, obj client.Object) bool {
	t.Helper()
	NewWithT(t).Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	return !obj.GetDeletionTimestamp().IsZero()
}

// TestControlPlaneGoesLast: the Machines of a control plane outlive the workers, and are deleted when their control plane
// decides; what it leaves behind is deleted after it.
func TestControlPlaneGoesLast(t *testing.T) {
	for _, referred := range []bool{true, false} {
		t.Run(map[bool]string{true: "with a control plane object", false: "without"}[referred], func(t *testing.T) {
			g := NewWithT(t)
			namespace := core.Namespace(t)
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}}
			plane := coretest.Object(coretest.Kind(coretest.ControlPlane, version.V1Beta2), namespace, "p")
			cluster.Spec.InfrastructureRef = coretest.Ref("Nowhere", "i")
			if referred {
				cluster.Spec.ControlPlaneRef = coretest.Ref(plane.GetKind(), "p")
				plane.SetFinalizers([]string{heldBy})
				core.Create(t, plane)
			}
			core.Create(t, cluster)
			worker, master := standaloneMachine(namespace, "worker", nil), standaloneMachine(namespace, "master", controlPlaneLabels)
			core.Create(t, worker)
			core.Create(t, master)
			waitsFor := func(reason, names string) {
				t.Helper()
				eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
					g.Expect(condition(c, "Deleting")).To(Equal("True/" + reason))
					g.Expect(message(c, "Deleting")).To(HaveSuffix(names))
				})
			}
			eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) { g.Expect(c.Finalizers).NotTo(BeEmpty()) })
			g.Expect(core.Client.Delete(t.Context(), cluster)).To(Succeed())
			waitsFor("WaitingForWorkersDeletion", " Machine worker")
			g.Expect(isDeleted(t, worker)).To(BeTrue())
			g.Expect(isDeleted(t, master)).To(BeFalse())

			release(t, worker)
			if referred {
				waitsFor("WaitingForControlPlaneDeletion", plane.GetKind()+" p")
				g.Expect(isDeleted(t, plane)).To(BeTrue())
				g.Expect(isDeleted(t, master)).To(BeFalse(), "its control plane decides when it is deleted")
				release(t, plane)
			}
			waitsFor("WaitingForControlPlaneDeletion", "control plane Machine master")
			g.Expect(isDeleted(t, master)).To(BeTrue())
			release(t, master)
			eventuallyGone(t, cluster)
		})
	}
}
