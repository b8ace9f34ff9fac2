package remote

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/event"
)

// TestAClusterThatReplacesAnother: a Cluster was deleted and created again before a reconcile. The connection to the target cluster of
// the first is none to that of the second, whose kubeconfig is yet to come.
func TestAClusterThatReplacesAnother(t *testing.T) {
	target := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
	t.Cleanup(target.Close)
	for name, test := range map[string]struct {
		infrastructure clusterv1.ContractVersionedObjectReference
		reason         string
	}{
		"without infrastructure yet": {clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "K", Name: "n"}, NotDialledYet},
		"without a kubeconfig":       {clusterv1.ContractVersionedObjectReference{}, KubeconfigMissing},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
			g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
			key := types.NamespacedName{Namespace: "default", Name: "c"}
			meta := metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "first"}
			first := &clusterv1.Cluster{ObjectMeta: meta}
			secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: SecretName(key.Name)}}
			secret.Data = map[string][]byte{SecretKey: fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
				"contexts":[{"name":"x","context":{"cluster":"x"}}],"clusters":[{"name":"x","cluster":{"server":%q}}]}`, target.URL)}
			home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(first, secret).Build()
			r := &Reconciler{Client: home, Connections: New(Options{Secrets: home, Scheme: scheme, QPS: -1})}
			t.Cleanup(r.Connections.Close)
			reason := func() string {
				var not *NotConnectedError
				if _, err := r.Connections.Get(key); errors.As(err, &not) {
					return not.Reason
				}
				return ""
			}
			reconcile := func() {
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				g.Expect(err).NotTo(HaveOccurred())
			}
			reconcile()
			g.Eventually(reason).Should(BeEmpty())
			reconcile()
			g.Consistently(reason, 100*time.Millisecond).Should(BeEmpty())
			notices := make(chan types.NamespacedName, 9)
			r.Connections.OnConnectivity(func(cluster types.NamespacedName) { notices <- cluster })

			g.Expect(home.Delete(t.Context(), secret)).To(Succeed())
			g.Expect(home.Delete(t.Context(), first)).To(Succeed())
			meta.UID = "second"
			second := &clusterv1.Cluster{ObjectMeta: meta, Spec: clusterv1.ClusterSpec{InfrastructureRef: test.infrastructure}}
			g.Expect(home.Create(t.Context(), second)).To(Succeed())
			g.Expect(readinessChanged().Update(event.UpdateEvent{ObjectOld: first, ObjectNew: second})).To(BeTrue())
			reconcile()
			g.Eventually(reason).Should(Equal(test.reason))
			g.Eventually(notices).Should(Receive(Equal(key)), "users of the first connection for the second Cluster reconcile again")
		})
	}
}

// TestTheEndOfAConnectionIsNoticed: no answer comes over a connection that was ended because the Cluster is gone, or another
// manager's.
func TestTheEndOfAConnectionIsNoticed(t *testing.T) {
	for name, end := range map[string]func(client.Client, *clusterv1.Cluster) error{
		"gone": func(home client.Client, cluster *clusterv1.Cluster) error { return home.Delete(t.Context(), cluster) },
		"of another manager": func(home client.Client, cluster *clusterv1.Cluster) error {
			cluster.Labels = map[string]string{clusterv1.WatchLabel: "other"}
			return home.Update(t.Context(), cluster)
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
			g.Expect(clientgoscheme.AddToScheme(scheme)).To(Succeed())
			key := types.NamespacedName{Namespace: "default", Name: "c"}
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name, UID: "u"}}
			cluster.Labels = map[string]string{clusterv1.WatchLabel: "own"}
			home := fake.NewClientBuilder().WithScheme(scheme).WithObjects(cluster).Build()
			r := &Reconciler{Client: home, Connections: New(Options{Secrets: home, Scheme: scheme}), WatchFilter: "own"}
			t.Cleanup(r.Connections.Close)
			reconcile := func() {
				_, err := r.Reconcile(t.Context(), ctrl.Request{NamespacedName: key})
				g.Expect(err).NotTo(HaveOccurred())
			}
			reason := func() string {
				var not *NotConnectedError
				_, err := r.Connections.Get(key)
				g.Expect(errors.As(err, &not)).To(BeTrue())
				return not.Reason
			}
			reasons := make(chan string, 10)
			r.Connections.OnConnectivity(func(types.NamespacedName) { reasons <- reason() })
			reconcile()
			g.Eventually(reasons).Should(Receive(Equal(KubeconfigMissing)))
			g.Expect(end(home, cluster)).To(Succeed())
			reconcile()
			g.Expect(reasons).To(Receive(Equal(NotDialledYet)))
			reconcile()
			g.Expect(reasons).To(BeEmpty(), "there was no connection any more")
		})
	}
}
