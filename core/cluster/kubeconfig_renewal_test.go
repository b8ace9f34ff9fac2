package cluster_test

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/cluster/kubeconfig"
)

// TestARenewal: the client certificate in a kubeconfig of a core is replaced when half of its time is over, and a refusal is reported.
func TestARenewal(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	ca := authority(t, namespace)
	core.Create(t, ca)
	c := withEndpoint(namespace)
	c.Spec.Paused = ptr.To(true)
	core.Create(t, c)
	old := kubeconfigOf(namespace)
	old.Labels, old.Type = map[string]string{clusterv1.ClusterNameLabel: "c"}, clusterv1.ClusterSecretType
	old.OwnerReferences = []metav1.OwnerReference{{APIVersion: clusterv1.GroupVersion.String(), Kind: "Cluster", Name: "c", UID: c.UID}}
	old.Data = map[string][]byte{"value": madeAt(t, ca, time.Now().Add(-kubeconfig.Validity/2-time.Hour))}
	core.Create(t, old)
	lift := refuseSecrets(t, namespace, "!object.metadata.name.startsWith('c-kubeconfig')", "kubeconfigs are frozen")
	g.Expect(core.Client.Patch(t.Context(), c, client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"paused":false}}`)))).
		To(Succeed())
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(message(c, "RemoteConnectionProbe")).To(And(ContainSubstring("The client certificate in Secret c-kubeconfig cannot be renewed"),
			ContainSubstring("kubeconfigs are frozen")))
	})
	lift()
	eventuallySecret(t, namespace, func(g Gomega, s *corev1.Secret) {
		config, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
		g.Expect(err).NotTo(HaveOccurred())
		certificates, err := cert.ParseCertsPEM(config.CertData)
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(certificates[0].NotAfter).To(BeTemporally("~", time.Now().Add(kubeconfig.Validity), time.Hour))
		g.Expect(s.UID).To(Equal(old.UID))
		g.Expect(s.OwnerReferences).To(Equal(old.OwnerReferences))
	})
}

// TestACoreThatIsBehind creates no kubeconfig for a Cluster of the past, which the garbage collector would delete, and none over one that
// it does not see yet.
func TestACoreThatIsBehind(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	c := withEndpoint(namespace)
	c.Spec.Paused = ptr.To(true) // The core that runs leaves it alone.
	core.Create(t, c)
	core.Create(t, authority(t, namespace))
	seen := c.DeepCopy()
	seen.Spec.Paused, seen.Finalizers, seen.UID = nil, []string{clusterv1.ClusterFinalizer}, "past"
	stale := live(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if read, ok := obj.(*clusterv1.Cluster); ok {
				seen.DeepCopyInto(read)
				return nil
			}
			return c.Get(ctx, key, obj, options...)
		},
	})
	_, err := reconcile(t, direct(stale), c)
	g.Expect(err).To(Or(BeNil(), MatchError(ContainSubstring("the object has been modified"))), "the status of the past is refused")
	g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(kubeconfigOf(namespace)), &corev1.Secret{})).NotTo(Succeed())

	seen.UID = c.UID
	core.Kubeconfig(t, namespace, "c", core.Env.Kubeconfig)
	before := eventuallySecret(t, namespace, func(Gomega, *corev1.Secret) {})
	r := direct(stale)
	r.APIReader = live(t, interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, options ...client.GetOption) error {
			if key.Name == "c-kubeconfig" {
				key.Name = "none"
			}
			return c.Get(ctx, key, obj, options...)
		},
	})
	_, err = reconcile(t, r, c)
	g.Expect(err).NotTo(HaveOccurred(), "the faster writer has it")
	after := eventuallySecret(t, namespace, func(Gomega, *corev1.Secret) {})
	g.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion))
}

// TestAnAuthorityThatNeverComes, or whose label is missing so that no watch shows it, is looked for now and then.
func TestAnAuthorityThatNeverComes(t *testing.T) {
	g := NewWithT(t)
	c := withEndpoint(core.Namespace(t))
	core.Create(t, c)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(message(c, "ControlPlaneInitialized")).To(ContainSubstring("Secret c-kubeconfig does not exist"))
	})
	result, err := reconcile(t, direct(live(t, interceptor.Funcs{})), c)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(result.RequeueAfter).To(And(BeNumerically(">", 0), BeNumerically("<=", 30*time.Second)))
}
