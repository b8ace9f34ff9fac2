package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"testing"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/test/sandbox"
)

// TestTokensBeforeTheJoin takes the two tokens that a machine holds before it joins and tries what
// a thief would.
func TestTokensBeforeTheJoin(t *testing.T) {
	w := sharedWorld(t, "tokens")
	w.neverJoin()
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(2))).To(Succeed())
	w.Eventually(w.machines).Should(HaveLen(2))
	machines := w.machines()
	own := nodeaccess.NamesFor(w.namespace, sandbox.SampleCluster, machines[0].Name)
	other := nodeaccess.NamesFor(w.namespace, sandbox.SampleCluster, machines[1].Name)
	download, join := w.awaitTokens(own)
	w.awaitTokens(other)

	t.Run("the download token reads its own Secret and nothing else", func(t *testing.T) {
		g := NewWithT(t)
		c := w.clientOf(download)
		g.Expect(c.Get(w.ctx, key(own.Object()), &corev1.Secret{})).To(Succeed())
		w.expectNothingElse(g, c, other)
		g.Expect(c.Create(w.ctx, request(t, "stolen-download", machines[0].Name))).To(Satisfy(forbidden))
	})
	t.Run("the join token requests certificates and reads nothing", func(t *testing.T) {
		g := NewWithT(t)
		c := w.clientOf(join)
		g.Expect(c.Get(w.ctx, key(own.Object()), &corev1.Secret{})).To(Satisfy(forbidden))
		w.expectNothingElse(g, c, other)
	})
	t.Run("the join token gets a certificate for its own Node only", func(t *testing.T) {
		w.expectOwnCertificateOnly(t, w.clientOf(join), machines)
	})
}

// neverJoin lets machines boot and get their Secret, and not join: they hold their tokens until the
// test ends.
func (w *world) neverJoin() {
	w.t.Helper()
	w.Expect(w.sandbox.WithholdKubelet()).To(Succeed())
	w.t.Cleanup(func() { w.Expect(w.sandbox.ReturnKubelet()).To(Succeed()) })
}

// awaitTokens waits for the tokens of a machine and for its Secret.
func (w *world) awaitTokens(names nodeaccess.Names) (download, join string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		secrets := &corev1.SecretList{}
		g.Expect(w.target.List(w.ctx, secrets, client.InNamespace(nodeaccess.TokenNamespace),
			client.MatchingLabels{nodeaccess.HashLabel: names.Hash})).
			To(Succeed())
		download, join = "", ""
		for _, s := range secrets.Items {
			if s.Type != corev1.SecretTypeBootstrapToken {
				continue
			}
			token := string(s.Data["token-id"]) + "." + string(s.Data["token-secret"])
			if string(s.Data["auth-extra-groups"]) == names.DownloadGroup() {
				download = token
			} else {
				join = token
			}
		}
		g.Expect(download).NotTo(BeEmpty())
		g.Expect(join).NotTo(BeEmpty())
		g.Expect(w.target.Get(w.ctx, key(names.Object()), &corev1.Secret{})).To(Succeed())
	}).Should(Succeed())
	return download, join
}

func (w *world) clientOf(token string) sandbox.Client {
	w.t.Helper()
	kubeconfig, err := w.sandbox.Target.TokenKubeconfig(token)
	w.Expect(err).NotTo(HaveOccurred())
	c, err := sandbox.ClientFor(kubeconfig)
	w.Expect(err).NotTo(HaveOccurred())
	return c
}

func key(name string) client.ObjectKey {
	return client.ObjectKey{Namespace: nodeaccess.DefaultNamespace, Name: name}
}

// expectNothingElse tries what neither token may do.
func (w *world) expectNothingElse(g *WithT, c sandbox.Client, other nodeaccess.Names) {
	w.t.Helper()
	own := client.InNamespace(nodeaccess.DefaultNamespace)
	meta := metav1.ObjectMeta{Namespace: nodeaccess.DefaultNamespace, Name: "stolen"}
	for what, err := range map[string]error{
		"get another machine's Secret": c.Get(w.ctx, key(other.Object()), &corev1.Secret{}),
		"list Secrets":                 c.List(w.ctx, &corev1.SecretList{}, own),
		"list tokens":                  c.List(w.ctx, &corev1.SecretList{}, client.InNamespace(nodeaccess.TokenNamespace)),
		"list all Secrets":             c.List(w.ctx, &corev1.SecretList{}),
		"create a Secret":              c.Create(w.ctx, &corev1.Secret{ObjectMeta: meta}),
		"get ConfigMaps":               c.List(w.ctx, &corev1.ConfigMapList{}, own),
		"list Nodes":                   c.List(w.ctx, &corev1.NodeList{}),
		"create a Node":                c.Create(w.ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "stolen"}}),
		"list pods":                    c.List(w.ctx, &corev1.PodList{}),
		"create a pod": c.Create(w.ctx, &corev1.Pod{ObjectMeta: meta, Spec: corev1.PodSpec{
			Containers: []corev1.Container{{Name: "a", Image: "a"}},
		}}),
		"list ClusterRoleBindings": c.List(w.ctx, &rbacv1.ClusterRoleBindingList{}),
		"create a ClusterRoleBinding": c.Create(w.ctx, &rbacv1.ClusterRoleBinding{
			ObjectMeta: metav1.ObjectMeta{Name: "stolen"},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
		}),
		"list Machines": c.List(w.ctx, &clusterv1.MachineList{}),
	} {
		g.Expect(apierrors.IsForbidden(err)).To(BeTrue(), "%s: %v", what, err)
	}
}

// expectOwnCertificateOnly requests certificates of other Nodes first and of the own one last: when
// that is issued, the others have been processed without one.
func (w *world) expectOwnCertificateOnly(t *testing.T, c sandbox.Client, machines []clusterv1.Machine) {
	t.Helper()
	g := NewWithT(t)
	wrong := []*certificatesv1.CertificateSigningRequest{
		request(t, "stolen-other-machine", machines[1].Name),
		request(t, "stolen-no-machine", "no-machine"),
	}
	own := request(t, "stolen-own", machines[0].Name)
	for _, r := range append(wrong, own) {
		g.Expect(c.Create(w.ctx, r)).To(Succeed(), r.Name)
		t.Cleanup(func() { g.Expect(client.IgnoreNotFound(w.target.Delete(w.ctx, r))).To(Succeed()) })
	}
	w.awaitCertificate(own)
	for _, r := range wrong {
		w.expectNoCertificate(r)
	}
}

// awaitCertificate waits until a request is approved and signed.
func (w *world) awaitCertificate(r *certificatesv1.CertificateSigningRequest) {
	w.t.Helper()
	w.Eventually(func() (string, error) {
		err := w.target.Get(w.ctx, client.ObjectKeyFromObject(r), r)
		return string(r.Status.Certificate), err
	}).Should(ContainSubstring("BEGIN CERTIFICATE"), r.Name)
}

// expectNoCertificate makes sure that a request was not approved so far.
func (w *world) expectNoCertificate(r *certificatesv1.CertificateSigningRequest) {
	w.t.Helper()
	w.Expect(w.target.Get(w.ctx, client.ObjectKeyFromObject(r), r)).To(Succeed())
	w.Expect(r.Status.Certificate).To(BeEmpty(), r.Name)
	for _, condition := range r.Status.Conditions {
		w.Expect(condition.Type).NotTo(Equal(certificatesv1.CertificateApproved), r.Name)
	}
}

// request is what a kubelet of that name requests.
func request(t *testing.T, name, node string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	asked, _ := requestWithKey(t, name, node)
	return asked
}

// requestWithKey is the same with the private key, in PEM, to use the certificate.
func requestWithKey(t *testing.T, name, node string) (*certificatesv1.CertificateSigningRequest, []byte) {
	t.Helper()
	g := NewWithT(t)
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	g.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:" + node, Organization: []string{"system:nodes"}},
	}, private)
	g.Expect(err).NotTo(HaveOccurred())
	privateDER, err := x509.MarshalPKCS8PrivateKey(private)
	g.Expect(err).NotTo(HaveOccurred())
	return &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: privateDER})
}
