package remote

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestWhichClustersAreConnected: those with infrastructure, or that have none, and which updates of them may change that.
func TestWhichClustersAreConnected(t *testing.T) {
	of := func(infrastructure bool, provisioned *bool, label string) *clusterv1.Cluster {
		cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: theCluster.Namespace, Name: theCluster.Name, UID: "u"}}
		cluster.Labels = map[string]string{clusterv1.WatchLabel: label}
		if infrastructure {
			cluster.Spec.InfrastructureRef = clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "K", Name: "n"}
		}
		cluster.Status.Initialization.InfrastructureProvisioned = provisioned
		return cluster
	}
	without, waits := of(false, nil, "own"), of(true, nil, "own")
	failed, provisioned := of(true, ptr.To(false), "own"), of(true, ptr.To(true), "own")
	for name, test := range map[string]struct {
		cluster   *clusterv1.Cluster
		connected bool
	}{
		"no infrastructure": {without, true}, "infrastructure that waits": {waits, false}, "that is not provisioned": {failed, false},
		"that is provisioned": {provisioned, true}, "of another manager": {of(false, nil, "other"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g, scheme := NewWithT(t), runtime.NewScheme()
			g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
			home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(test.cluster).Build()
			var broken error
			reads := interceptor.NewClient(home, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, options ...client.GetOption) error {
					if broken != nil {
						return broken
					}
					return c.Get(ctx, key, o, options...)
				},
			})
			r := &Reconciler{Client: reads, Connections: New(Options{Secrets: newSecrets("http://h"), Scheme: scheme}), WatchFilter: "own"}
			t.Cleanup(r.Connections.Close)
			_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: theCluster})
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(r.Connections.find(theCluster) != nil).To(Equal(test.connected))
			broken = errors.New("no answer")
			_, err = r.Reconcile(t.Context(), ctrl.Request{NamespacedName: theCluster})
			g.Expect(err).To(MatchError(broken))
			g.Expect(r.Connections.find(theCluster) != nil).To(Equal(test.connected), "a read that fails ends nothing")
		})
	}
	for name, test := range map[string]struct {
		before, after *clusterv1.Cluster
		passes        bool
	}{
		"nothing": {waits, failed, false}, "it is provisioned": {failed, provisioned, true},
		"it is another manager's": {without, of(false, nil, "o"), true}, "both": {waits, of(true, ptr.To(true), "o"), true},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(readinessChanged().Update(event.UpdateEvent{ObjectOld: test.before, ObjectNew: test.after})).To(Equal(test.passes))
		})
	}
}

// TestTheClusterOfASecret has its kubeconfig read again when that changes.
func TestTheClusterOfASecret(t *testing.T) {
	g := NewWithT(t)
	of := func(name string) []reconcile.Request {
		return ofKubeconfig(t.Context(), &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: name}})
	}
	g.Expect(of("c-kubeconfig")).To(ConsistOf(reconcile.Request{NamespacedName: theCluster}))
	g.Expect(of("c-ca")).To(BeEmpty())
}
