package remote_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"

	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
)

// unsteadySecrets fails to read as often as the test wants.
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
	connections := remote.New(shared.Options{
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
	g.Expect(connections.KubeconfigError(key)).To(BeEmpty())
}

// TestAKubeconfigThatIsNotUsedIsReported: the connection is kept when its kubeconfig is replaced by one that is refused, and why
// is notified, each time that it changes.
func TestAKubeconfigThatIsNotUsedIsReported(t *testing.T) {
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
	executes := []byte(
		`{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":"https://h"}}],
		"users":[{"name":"x","user":{"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"c","interactiveMode":"Never"}}}]}`,
	)
	for _, test := range []struct {
		name    string
		change  func()
		wantErr string
	}{
		{"an exec plugin", func() { secret.Data["value"] = executes }, "exec plugin"},
		{"another Cluster's", func() {
			secret.Data["value"] = env.Kubeconfig
			secret.Labels = map[string]string{"cluster.x-k8s.io/cluster-name": "other"}
		}, `Cluster "other"`},
		{"bootstrap data", func() {
			secret.Labels = nil
			secret.OwnerReferences = []metav1.OwnerReference{{APIVersion: "bootstrap.cluster.x-k8s.io/v1beta2", Kind: "CloudConfig", Name: "m",
				UID: "u"}}
		}, "bootstrap data of CloudConfig m"},
		{"the first again", func() { secret.OwnerReferences = nil }, ""},
	} {
		notified := changes.Load()
		test.change()
		g.Expect(live.Update(t.Context(), secret)).To(Succeed())
		connections.Ensure(t.Context(), key)
		g.Eventually(func() string { return connections.KubeconfigError(key) }).WithTimeout(timeout).Should(
			Or(And(ContainSubstring(test.wantErr), Not(Equal(test.wantErr))), Equal(test.wantErr)), test.name)
		g.Eventually(changes.Load).WithTimeout(timeout).Should(BeNumerically(">", notified), test.name)
		now, err := connections.Get(key)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(now).To(BeIdenticalTo(first), test.name)
	}
	g.Expect(live.Delete(t.Context(), secret)).To(Succeed())
	connections.Ensure(t.Context(), key)
	g.Eventually(func() string { return connections.KubeconfigError(key) }).WithTimeout(timeout).Should(ContainSubstring("does not exist"))
}

// TestAForeignSecretConnectsNothing: bootstrap data have a name that users choose, and the same key.
func TestAForeignSecretConnectsNothing(t *testing.T) {
	g := NewWithT(t)
	connections := newConnections()
	defer connections.Close()
	key := types.NamespacedName{Namespace: "default", Name: "foreign"}
	secret := &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "default",
			Name:      shared.SecretName(key.Name),
			Labels:    map[string]string{"cluster.x-k8s.io/cluster-name": key.Name},
			OwnerReferences: []metav1.OwnerReference{
				{APIVersion: "bootstrap.cluster.x-k8s.io/v1beta2", Kind: "CloudConfig", Name: "foreign-kubeconfig", UID: "u"},
			},
		},
		Data: map[string][]byte{"value": env.Kubeconfig},
	}
	g.Expect(live.Create(t.Context(), secret)).To(Succeed())
	defer func() { g.Expect(live.Delete(context.WithoutCancel(t.Context()), secret)).To(Succeed()) }()
	connections.Ensure(t.Context(), key)
	g.Eventually(func() error { _, err := connections.Get(key); return err }).WithTimeout(timeout).
		Should(MatchError(ContainSubstring("bootstrap data of CloudConfig")))
}
