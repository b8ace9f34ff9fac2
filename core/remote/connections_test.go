package remote_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/remote"
	"millwright.dev/test/testenv"
)

var (
	env  *testenv.Env
	live client.Client
)

const timeout = time.Minute

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	if os.Getenv("MILLWRIGHT_PURE_TESTS") != "" {
		// Those of pure functions alone, see test/mutate.
		return m.Run()
	}
	var err error
	if env, err = testenv.Start(testenv.Options{}); err == nil {
		live, err = client.New(env.Config, client.Options{Scheme: clientgoscheme.Scheme})
	}
	if err != nil {
		fmt.Println(err)
		return 1
	}
	defer func() { _ = env.Stop() }()
	return m.Run()
}

func newConnections() *remote.Connections {
	return remote.New(remote.Options{
		Secrets: live, Scheme: clientgoscheme.Scheme, UserAgent: "test", QPS: -1,
		MinRetry: 20 * time.Millisecond, MaxRetry: 100 * time.Millisecond, ProbeInterval: 100 * time.Millisecond,
	})
}

func writeKubeconfig(t *testing.T, name string, content []byte) *corev1.Secret {
	t.Helper()
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: remote.SecretName(name)}, Data: map[string][]byte{"value": content}}
	if err := live.Create(t.Context(), secret); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = live.Delete(context.WithoutCancel(t.Context()), secret) })
	return secret
}

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
		var not *remote.NotConnectedError
		if errors.As(err, &not) {
			return not.Reason
		}
		return ""
	}
	g.Expect(reason()).To(Equal(remote.NotDialledYet))
	connections.Ensure(t.Context(), key)
	g.Eventually(reason).WithTimeout(timeout).Should(Equal(remote.KubeconfigMissing))

	secret := writeKubeconfig(t, key.Name, []byte("nonsense"))
	g.Eventually(reason).WithTimeout(timeout).Should(Equal(remote.KubeconfigInvalid))

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

	// The same content written anew changes nothing, another does; without a Secret the connection is kept.
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

// kubeconfigFor reaches a server without credentials.
func kubeconfigFor(server string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":%q}}],"users":[{"name":"x","user":{}}]}`, server)
}

// kubeconfigs stands in for the Secrets of very many Clusters; all but one lead nowhere.
type kubeconfigs struct {
	client.Reader
	alive string
}

func (k kubeconfigs) Get(_ context.Context, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
	// A port of the documentation network: packets go nowhere, nothing answers.
	content := kubeconfigFor("https://192.0.2.1:6443")
	if key.Name == remote.SecretName(k.alive) {
		content = env.Kubeconfig
	}
	obj.(*corev1.Secret).Data = map[string][]byte{"value": content}
	return nil
}

// TestDeadClustersHoldUpNobody: two thousand clusters that do not answer, and one that does, the last to come.
func TestDeadClustersHoldUpNobody(t *testing.T) {
	g := NewWithT(t)
	connections := remote.New(remote.Options{Secrets: kubeconfigs{alive: "alive"}, Scheme: clientgoscheme.Scheme, UserAgent: "test", QPS: -1})
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
	connections := newConnections()
	writeKubeconfig(t, "short", env.Kubeconfig)
	key := types.NamespacedName{Namespace: "default", Name: "short"}
	cycle := func() {
		connections.Ensure(t.Context(), key)
		g.Eventually(func() error { _, err := connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
		connections.Remove(key)
		_, err := connections.Get(key)
		g.Expect(err).To(HaveOccurred())
	}
	cycle() // the first makes what HTTP clients share
	connections.Close()
	before := runtime.NumGoroutine()
	for range 5 {
		cycle()
	}
	connections.Close()
	g.Eventually(runtime.NumGoroutine).WithTimeout(timeout).Should(BeNumerically("<=", before+3))
}

// unsteadySecrets fails to read as often as it is told to.
type unsteadySecrets struct {
	client.Reader
	failures atomic.Int32
}

func (u *unsteadySecrets) Get(ctx context.Context, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
	if u.failures.Add(-1) >= 0 {
		return errors.New("the API server is away")
	}
	return u.Reader.Get(ctx, key, obj, options...)
}

// TestARotationSurvivesAFailedRead: the notice of a new kubeconfig comes once, and the read that it leads to fails.
func TestARotationSurvivesAFailedRead(t *testing.T) {
	g := NewWithT(t)
	secrets := &unsteadySecrets{Reader: live}
	connections := remote.New(remote.Options{
		Secrets: secrets, Scheme: clientgoscheme.Scheme, UserAgent: "test", QPS: -1,
		MinRetry: 20 * time.Millisecond, MaxRetry: 100 * time.Millisecond, ProbeInterval: time.Hour,
	})
	defer connections.Close()
	key := types.NamespacedName{Namespace: "default", Name: "unsteady"}
	secret := writeKubeconfig(t, key.Name, env.Kubeconfig)
	connections.Ensure(t.Context(), key)
	var first *remote.Connection
	g.Eventually(func() (err error) { first, err = connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())

	secret.Data["value"] = append([]byte("# rotated\n"), env.Kubeconfig...)
	g.Expect(live.Update(t.Context(), secret)).To(Succeed())
	secrets.failures.Store(3)
	connections.Ensure(t.Context(), key)
	g.Eventually(func() bool { c, _ := connections.Get(key); return c != nil && c != first }).WithTimeout(timeout).Should(BeTrue())
	g.Expect(connections.KubeconfigProblem(key)).To(BeEmpty())
}

// TestAKubeconfigThatIsNotUsedIsTold: the connection is kept when its kubeconfig is replaced by one that is refused, and why
// is told, each time that it changes.
func TestAKubeconfigThatIsNotUsedIsTold(t *testing.T) {
	g := NewWithT(t)
	connections := newConnections()
	defer connections.Close()
	var changes atomic.Int32
	connections.OnConnectivity(func(types.NamespacedName) { changes.Add(1) })
	key := types.NamespacedName{Namespace: "default", Name: "refused"}
	secret := writeKubeconfig(t, key.Name, env.Kubeconfig)
	connections.Ensure(t.Context(), key)
	var first *remote.Connection
	g.Eventually(func() (err error) { first, err = connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
	executes := []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"https://h"}}],"users":[{"name":"x","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"c","interactiveMode":"Never"}}}]}`)
	for _, test := range []struct {
		name    string
		change  func()
		problem string
	}{
		{"an exec plugin", func() { secret.Data["value"] = executes }, "exec plugin"},
		{"another Cluster's", func() {
			secret.Data["value"] = env.Kubeconfig
			secret.Labels = map[string]string{"cluster.x-k8s.io/cluster-name": "other"}
		}, `Cluster "other"`},
		{"bootstrap data", func() {
			secret.Labels = nil
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "bootstrap.cluster.x-k8s.io/v1beta2", Kind: "CloudConfig", Name: "m", UID: "u"}}
		}, "bootstrap data of CloudConfig m"},
		{"the first again", func() { secret.OwnerReferences = nil }, ""},
	} {
		told := changes.Load()
		test.change()
		g.Expect(live.Update(t.Context(), secret)).To(Succeed())
		connections.Ensure(t.Context(), key)
		g.Eventually(func() string { return connections.KubeconfigProblem(key) }).WithTimeout(timeout).Should(
			Or(And(ContainSubstring(test.problem), Not(Equal(test.problem))), Equal(test.problem)), test.name)
		g.Eventually(changes.Load).WithTimeout(timeout).Should(BeNumerically(">", told), test.name)
		now, err := connections.Get(key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(now).To(BeIdenticalTo(first), test.name)
	}
	g.Expect(live.Delete(t.Context(), secret)).To(Succeed())
	connections.Ensure(t.Context(), key)
	g.Eventually(func() string { return connections.KubeconfigProblem(key) }).WithTimeout(timeout).Should(ContainSubstring("does not exist"))
}

// TestASecretOfSomebodyElseConnectsNothing: bootstrap data have a name that users choose, and the same key.
func TestASecretOfSomebodyElseConnectsNothing(t *testing.T) {
	g := NewWithT(t)
	connections := newConnections()
	defer connections.Close()
	key := types.NamespacedName{Namespace: "default", Name: "foreign"}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default", Name: remote.SecretName(key.Name), Labels: map[string]string{"cluster.x-k8s.io/cluster-name": key.Name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "bootstrap.cluster.x-k8s.io/v1beta2", Kind: "CloudConfig", Name: "foreign-kubeconfig", UID: "u"}},
		},
		Data: map[string][]byte{"value": env.Kubeconfig},
	}
	g.Expect(live.Create(t.Context(), secret)).To(Succeed())
	defer func() { g.Expect(live.Delete(context.WithoutCancel(t.Context()), secret)).To(Succeed()) }()
	connections.Ensure(t.Context(), key)
	g.Eventually(func() error { _, err := connections.Get(key); return err }).WithTimeout(timeout).
		Should(MatchError(ContainSubstring("bootstrap data of CloudConfig")))
}

// TestOneRefusedProbeDropsNoConnection: an API server whose authenticator or authorizer is away for a moment refuses
// everybody. As with other failures it takes several in a row.
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
			g.Eventually(func() error { _, err := connections.Get(key); return err }).WithTimeout(timeout).Should(HaveField("Reason", remote.Unauthorized))
			proxy.refuse(status, 0)
			g.Eventually(func() error { _, err := connections.Get(key); return err }).WithTimeout(timeout).Should(Succeed())
		})
	}
}
