package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestClusterDeletion deletes only the Cluster: its machines are deleted first, with their Nodes and everything
// that was created for them in the target cluster.
func TestClusterDeletion(t *testing.T) {
	w := sharedWorld(t, "cluster-deletion")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(2))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())
	w.Expect(w.scenario.DeleteRest(w.ctx)).To(Succeed())
	w.Expect(w.scenario.Watch.Machines()).To(BeEmpty())
	w.Expect(w.scenario.AwaitNothingLeft(w.ctx)).To(Succeed())
}

// TestNamespaceDeletion deletes the namespace of everything: Kubernetes deletes Cluster, Machines, their objects and the
// kubeconfig in no order and all at once, and nothing new can be created, events included.
func TestNamespaceDeletion(t *testing.T) {
	w := sharedWorld(t, "namespace-deletion")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(2))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.namespace}}
	w.Expect(w.control.Delete(w.ctx, namespace)).To(Succeed())
	w.Eventually(func() bool {
		return apierrors.IsNotFound(w.control.Get(w.ctx, client.ObjectKeyFromObject(namespace), namespace))
	}).Should(BeTrue(), "nothing blocks the deletion of the namespace")
	w.Expect(w.scenario.AwaitNothingLeft(w.ctx)).To(Succeed())
}
