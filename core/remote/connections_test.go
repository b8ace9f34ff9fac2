package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
)

func TestConnectionFollowsItsSecret(t *testing.T) {
	g := NewWithT(t)
	connections := newConnections()
	defer connections.Close()
	key := types.NamespacedName{Namespace: "default", Name: "follows"}
	var changes, nodes atomic.Int32
	connections.OnConnectivity(func(types.NamespacedName) { changes.Add(1) })
	connections.OnNode(func(cluster types.NamespacedName, _ *corev1.Node) {
		if cluster == key {
			nodes.Add(1)
		}
	})

	reason := func() string {
		_, err := connections.Get(key)
		var not *shared.NotConnectedError
		if errors.As(err, &not) {
			return not.Reason
		}
		return ""
	}
	g.Expect(reason()).To(Equal(shared.NotDialledYet))
	connections.Ensure(t.Context(), key)
	g.Eventually(reason).WithTimeout(timeout).Should(Equal(shared.KubeconfigMissing))

	secret := writeKubeconfig(t, key.Name, []byte("nonsense"))
	g.Eventually(reason).WithTimeout(timeout).Should(Equal(shared.KubeconfigInvalid))

	secret.Data["value"] = env.Kubeconfig
	g.Expect(live.Update(t.Context(), secret)).To(Succeed())
	connections.Ensure(t.Context(), key)
	g.Eventually(reason).WithTimeout(timeout).Should(BeEmpty())
	g.Expect(changes.Load()).To(BeNumerically(">=", 3))
	first, err := connections.Get(key)
	g.Expect(err).NotTo(HaveOccurred())

	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "follows"}, Spec: corev1.NodeSpec{ProviderID: "p://follows"}}
	g.Expect(live.Create(t.Context(), node)).To(Succeed())
	defer func() { g.Expect(live.Delete(context.WithoutCancel(t.Context()), node)).To(Succeed()) }()
	g.Eventually(nodes.Load).WithTimeout(timeout).Should(BeNumerically(">=", 1))
	found, err := first.NodesWithProviderID("p://follows")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveLen(1))

	// The same content written again changes nothing, another does; without a Secret the connection is kept.
	secret.Labels = map[string]string{"a": "b"}
	g.Expect(live.Update(t.Context(), secret)).To(Succeed())
	connections.Ensure(t.Context(), key)
	g.Consistently(func() *remote.Connection { c, _ := connections.Get(key); return c }).Should(BeIdenticalTo(first))
	secret.Data["value"] = append([]byte("# rotated\n"), env.Kubeconfig...)
	g.Expect(live.Update(t.Context(), secret)).To(Succeed())
	connections.Ensure(t.Context(), key)
	g.Eventually(func() bool { c, _ := connections.Get(key); return c != nil && c != first }).WithTimeout(timeout).Should(BeTrue())
	g.Expect(live.Delete(t.Context(), secret)).To(Succeed())
	connections.Ensure(t.Context(), key)
	g.Consistently(reason).Should(BeEmpty())
}

// kubeconfigs stands in for the Secrets of very many Clusters; all but one lead nowhere.
type kubeconfigs struct {
	client.Reader
	alive string
}

func (k kubeconfigs) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	// A port of the documentation network: packets go nowhere, nothing answers.
	content := kubeconfigFor("https://192.0.2.1:6443")
	if key.Name == shared.SecretName(k.alive) {
		content = env.Kubeconfig
	}
	obj.(*corev1.Secret).Data = map[string][]byte{"value": content}
	return nil
}

// TestDeadClustersBlockNoOther: two thousand clusters that do not answer, and one that does, the last to come.
func TestDeadClustersBlockNoOther(t *testing.T) {
	g := NewWithT(t)
	connections := remote.New(shared.Options{Secrets: kubeconfigs{alive: "alive"}, Scheme: clientgoscheme.Scheme, UserAgent: "test", QPS: -1})
	defer connections.Close()
	for i := range 2000 {
		connections.Ensure(t.Context(), types.NamespacedName{Namespace: "default", Name: fmt.Sprintf("dead-%d", i)})
	}
	key := types.NamespacedName{Namespace: "default", Name: "alive"}
	connections.Ensure(t.Context(), key)
	g.Eventually(func() error { _, err := connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
}

// TestNothingOutlivesItsCluster counts goroutines before and after.
func TestNothingOutlivesItsCluster(t *testing.T) {
	g := NewWithT(t)
	writeKubeconfig(t, "short", env.Kubeconfig)
	key := types.NamespacedName{Namespace: "default", Name: "short"}
	cycle := func(connections *remote.Connections) {
		connections.Ensure(t.Context(), key)
		g.Eventually(func() error { _, err := connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
		connections.Remove(key)
		_, err := connections.Get(key)
		g.Expect(err).To(HaveOccurred())
	}
	first := newConnections()
	cycle(first) // the first makes what HTTP clients share
	first.Close()
	before := runtime.NumGoroutine()
	connections := newConnections()
	for range 5 {
		cycle(connections)
	}
	connections.Close()
	g.Eventually(runtime.NumGoroutine).WithTimeout(timeout).Should(BeNumerically("<=", before+3))
}

// TestOneRefusedProbeDropsNoConnection: an API server whose authenticator or authorizer is away for a moment refuses
// all. As with other failures it takes several in a row.
func TestOneRefusedProbeDropsNoConnection(t *testing.T) {
	for _, status := range []int{http.StatusUnauthorized, http.StatusForbidden} {
		t.Run(http.StatusText(status), func(t *testing.T) {
			g := NewWithT(t)
			proxy := newCountedProxy(t)
			connections := newConnections()
			defer connections.Close()
			key := types.NamespacedName{Namespace: "default", Name: fmt.Sprint("refusing-", status)}
			writeKubeconfig(t, key.Name, kubeconfigFor(proxy.URL))
			connections.Ensure(t.Context(), key)
			var first *remote.Connection
			g.Eventually(func() (err error) { first, err = connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
			const short = 4
			proxy.refuse(status, short)
			g.Eventually(proxy.refusals.Load).WithTimeout(timeout).Should(BeNumerically("<=", 0))
			probes := proxy.probes.Load()
			g.Eventually(proxy.probes.Load).WithTimeout(timeout).Should(BeNumerically(">", probes+1))
			now, err := connections.Get(key)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(now).To(BeIdenticalTo(first))

			proxy.refuse(status, 1000)
			g.Eventually(func() error { _, err := connections.Get(key); return err }).
				WithTimeout(timeout).
				Should(HaveField("Reason", shared.Unauthorized))
			proxy.refuse(status, 0)
			g.Eventually(func() error { _, err := connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
		})
	}
}
