package cluster_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/version"
	"millwright.dev/core/cluster"
	"millwright.dev/core/cluster/kubeconfig"
	"millwright.dev/core/external"
	"millwright.dev/test/coretest"
)

// silent is an address that answers nothing.
var silent = clusterv1.APIEndpoint{Host: "192.0.2.1", Port: 6443}

// withEndpoint is a Cluster that knows where its API server is.
func withEndpoint(namespace string) *clusterv1.Cluster {
	return &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"}, Spec: clusterv1.ClusterSpec{ControlPlaneEndpoint: silent},
	}
}

// authority makes the Secret with the certificate authority of Cluster c, which is as old as a kubeconfig that is due.
func authority(t *testing.T, namespace string) *corev1.Secret {
	t.Helper()
	g := NewWithT(t)
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: time.Now().Add(-kubeconfig.Validity), NotAfter: time.Now().Add(3 * kubeconfig.Validity), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalECPrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	secret := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c-ca"}, Type: clusterv1.ClusterSecretType}
	secret.Labels = map[string]string{clusterv1.ClusterNameLabel: "c"}
	secret.Data = map[string][]byte{
		"tls.crt": pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		"tls.key": pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded}),
	}
	return secret
}

// madeAt is a kubeconfig that was issued with the authority at that time.
func madeAt(t *testing.T, ca *corev1.Secret, at time.Time) []byte {
	t.Helper()
	parsed, err := kubeconfig.ParseAuthority(ca.Data["tls.crt"], ca.Data["tls.key"])
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	content, err := parsed.Make("c", "https://192.0.2.1:6443", at)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return content
}

func kubeconfigOf(namespace string) *corev1.Secret {
	return &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c-kubeconfig"}}
}

// eventuallySecret waits until the kubeconfig Secret is there and matches.
func eventuallySecret(t *testing.T, namespace string, check func(Gomega, *corev1.Secret)) *corev1.Secret {
	t.Helper()
	secret := kubeconfigOf(namespace)
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(secret), secret)).To(Succeed())
		check(g, secret)
	}).WithTimeout(timeout).WithPolling(pollInterval).Should(Succeed())
	return secret
}

// TestAKubeconfigIsMadeFromTheAuthority, whether the authority or the endpoint is there first, and also while the API server does not
// answer. It is created again when it is deleted, and stays as it is otherwise.
func TestAKubeconfigIsMadeFromTheAuthority(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	infra := coretest.Object(coretest.Kind(coretest.InfraCluster, version.V1Beta2), namespace, "i")
	core.Create(t, infra)
	c := &clusterv1.Cluster{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
		Spec:       clusterv1.ClusterSpec{InfrastructureRef: coretest.Ref(infra.GetKind(), "i")},
	}
	core.Create(t, c)
	core.SetSpec(t, infra, map[string]any{"controlPlaneEndpoint": map[string]any{"host": "2001:db8::1", "port": int64(6443)}})
	core.SetStatus(t, infra, coretest.Provisioned(version.V1Beta2))
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(message(c, "ControlPlaneInitialized")).
			To(ContainSubstring("Secret c-kubeconfig does not exist"), "without an authority there is none")
	})

	ca := authority(t, namespace)
	core.Create(t, ca)
	made := eventuallySecret(t, namespace, func(g Gomega, s *corev1.Secret) {
		g.Expect(s.Labels).To(HaveKeyWithValue(clusterv1.ClusterNameLabel, "c"))
		g.Expect(s.Type).To(Equal(clusterv1.ClusterSecretType))
		g.Expect(s.OwnerReferences).To(ConsistOf(And(HaveField("Kind", "Cluster"), HaveField("Controller", BeNil()))))
		config, err := clientcmd.RESTConfigFromKubeConfig(s.Data["value"])
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(config.Host).To(Equal("https://[2001:db8::1]:6443"))
		g.Expect(config.CAData).To(Equal(ca.Data["tls.crt"]))
	})
	g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c)).To(Succeed())
	g.Expect(made.OwnerReferences[0].UID).To(Equal(c.UID))

	core.Restart(t)
	core.SetStatus(t, infra, map[string]any{"failureDomains": []any{map[string]any{"name": "a"}}})
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) { g.Expect(c.Status.FailureDomains).NotTo(BeEmpty()) })
	same := eventuallySecret(t, namespace, func(Gomega, *corev1.Secret) {})
	g.Expect(same.ResourceVersion).To(Equal(made.ResourceVersion), "another core leaves it as it is")
	g.Expect(core.Client.Delete(t.Context(), same)).To(Succeed())
	eventuallySecret(t, namespace, func(g Gomega, s *corev1.Secret) { g.Expect(s.UID).NotTo(Equal(made.UID)) })
}

// TestAForeignKubeconfigStays: one that a user has created, and one of a control plane provider.
func TestAForeignKubeconfigStays(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	ca := authority(t, namespace)
	core.Create(t, ca)
	core.Kubeconfig(t, namespace, "c", madeAt(t, ca, time.Now().Add(-kubeconfig.Validity+time.Hour)))
	before := eventuallySecret(t, namespace, func(Gomega, *corev1.Secret) {})
	c := withEndpoint(namespace)
	core.Create(t, c)
	provided := withEndpoint(core.Namespace(t))
	provided.Spec.ControlPlaneRef = coretest.Ref(coretest.Kind(coretest.ControlPlane, version.V1Beta2), "p")
	core.Create(t, authority(t, provided.Namespace))
	core.Create(t, provided)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "RemoteConnectionProbe")).To(HavePrefix("False/"))
	})
	_, err := reconcile(t, direct(live(t, interceptor.Funcs{})), c)
	g.Expect(err).NotTo(HaveOccurred())
	eventually(t, provided, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(condition(c, "RemoteConnectionProbe")).To(HavePrefix("False/"), "it was reconciled whole")
		g.Expect(message(c, "RemoteConnectionProbe")).To(ContainSubstring("Secret c-kubeconfig does not exist"))
	})
	after := eventuallySecret(t, namespace, func(Gomega, *corev1.Secret) {})
	g.Expect(after.ResourceVersion).To(Equal(before.ResourceVersion), "one without an owner is the user's, though it is due")
	err = core.Client.Get(t.Context(), client.ObjectKeyFromObject(kubeconfigOf(provided.Namespace)), &corev1.Secret{})
	g.Expect(client.IgnoreNotFound(err)).To(Succeed())
	g.Expect(err).To(HaveOccurred(), "the control plane provider makes it")
}

// live reads from the API server, which has no indexes: there are no workers.
func live(t *testing.T, funcs interceptor.Funcs) client.WithWatch {
	t.Helper()
	admin, err := client.NewWithWatch(core.Env.Config, client.Options{Scheme: core.Client.Scheme(), Mapper: core.Env.Mapper})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	funcs.List = func(context.Context, client.WithWatch, client.ObjectList, ...client.ListOption) error { return nil }
	return interceptor.NewClient(admin, funcs)
}

// direct is a reconciler without a manager, for Clusters that refer to nothing.
func direct(c client.WithWatch) *cluster.Reconciler {
	return &cluster.Reconciler{
		Client:      c,
		APIReader:   core.Client,
		Connections: core.Connections,
		Recorder:    events.NewFakeRecorder(100),
		Clock:       clock.RealClock{},
		Written:     &persist.Versions{},
		Kinds:       &external.Kinds{Informers: external.NewInformers(&version.Resolver{Reader: c}, nil, c, nil), Clock: clock.RealClock{}},
	}
}

// TestAnAuthorityThatCannotBeUsed is reported, with what is wrong with it.
func TestAnAuthorityThatCannotBeUsed(t *testing.T) {
	for name, test := range map[string]struct {
		change func(*corev1.Secret)
		says   string
	}{
		"without a key":     {func(s *corev1.Secret) { delete(s.Data, "tls.key") }, "it has no tls.key"},
		"another Cluster's": {func(s *corev1.Secret) { s.Labels[clusterv1.ClusterNameLabel] = "other" }, `labelled as one of Cluster "other"`},
		"something else":    {func(s *corev1.Secret) { s.Data = map[string][]byte{"value": []byte("x")} }, "tls.crt is not a certificate"},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := core.Namespace(t)
			ca := authority(t, namespace)
			whole := ca.DeepCopy()
			test.change(ca)
			core.Create(t, ca)
			c := withEndpoint(namespace)
			core.Create(t, c)
			eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
				for _, name := range []string{"ControlPlaneInitialized", "RemoteConnectionProbe"} {
					g.Expect(condition(c, name)).To(HavePrefix("False/"))
					g.Expect(message(c, name)).
						To(And(ContainSubstring("Secret c-kubeconfig cannot be made from Secret c-ca"), ContainSubstring(test.says)))
				}
			})
			ca.Data, ca.Labels = whole.Data, whole.Labels
			NewWithT(t).Expect(core.Client.Update(t.Context(), ca)).To(Succeed())
			eventuallySecret(t, namespace, func(Gomega, *corev1.Secret) {})
		})
	}
}

// TestAKubeconfigThatMayNotBeWritten is reported, in the words of the policy, and created once the policy is removed.
func TestAKubeconfigThatMayNotBeWritten(t *testing.T) {
	namespace := core.Namespace(t)
	lift := refuseSecrets(t, namespace, "!object.metadata.name.startsWith('c-kubeconfig')", "kubeconfigs are frozen")
	core.Create(t, authority(t, namespace))
	c := withEndpoint(namespace)
	core.Create(t, c)
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		for _, name := range []string{"ControlPlaneInitialized", "RemoteConnectionProbe"} {
			g.Expect(message(c, name)).To(And(ContainSubstring("Secret c-kubeconfig cannot be made"), ContainSubstring("kubeconfigs are frozen")))
		}
	})
	lift()
	eventuallySecret(t, namespace, func(Gomega, *corev1.Secret) {})
	eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
		g.Expect(message(c, "RemoteConnectionProbe")).NotTo(ContainSubstring("cannot be made"))
	})
}
