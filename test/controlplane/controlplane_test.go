package controlplane

import (
	"context"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
)

// waitFor is how long anything may take on a busy machine.
const waitFor = time.Minute

// TestControlPlane has one control plane for all subtests, since starting it takes time.
func TestControlPlane(t *testing.T) {
	g := NewWithT(t)
	ctx := context.Background()
	c, err := Start(ctx, Options{Name: "test"})
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(func() { _ = c.Stop() })
	admin := kubernetes.NewForConfigOrDie(c.Config())

	t.Run("a bootstrap token authenticates", func(t *testing.T) { testBootstrapToken(ctx, t, c, admin) })
	t.Run("a CSR is signed once approved", func(t *testing.T) { testSigning(ctx, t, admin) })
	t.Run("a ServiceAccount has no rights of its own", func(t *testing.T) { testServiceAccount(ctx, t, c, admin) })
	t.Run("the API server comes back with its data", func(t *testing.T) { testOutage(ctx, t, c, admin) })

	pids := []int{c.server.PID()}
	for _, p := range c.processes {
		pids = append(pids, p.PID())
	}
	g.Expect(pids).To(HaveLen(4))
	g.Expect(c.Stop()).To(Succeed())
	for _, pid := range pids {
		g.Expect(syscall.Kill(pid, 0)).To(MatchError(syscall.ESRCH))
	}
	g.Expect(c.Dir()).NotTo(BeADirectory())
}

func testBootstrapToken(ctx context.Context, t *testing.T, c *ControlPlane, admin kubernetes.Interface) {
	g := NewWithT(t)
	_, err := admin.CoreV1().Secrets(metav1.NamespaceSystem).Create(ctx, &corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Name: "bootstrap-token-abcdef"},
		Type:       corev1.SecretTypeBootstrapToken,
		StringData: map[string]string{
			"token-id": "abcdef", "token-secret": "0123456789abcdef", "usage-bootstrap-authentication": "true",
			"expiration": time.Now().Add(time.Hour).UTC().Format(time.RFC3339),
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	content, err := c.TokenKubeconfig("abcdef.0123456789abcdef")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := restConfig(content)
	g.Expect(err).NotTo(HaveOccurred())
	node := kubernetes.NewForConfigOrDie(config)
	g.Eventually(func(g Gomega) {
		review, err := node.AuthenticationV1().SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(review.Status.UserInfo.Username).To(Equal("system:bootstrap:abcdef"))
	}).WithTimeout(waitFor).Should(Succeed())
	_, err = node.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
	g.Expect(apierrors.IsForbidden(err)).To(BeTrue())
}

func testSigning(ctx context.Context, t *testing.T, admin kubernetes.Interface) {
	g := NewWithT(t)
	key, _, err := newKey()
	g.Expect(err).NotTo(HaveOccurred())
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{
		Subject: pkix.Name{CommonName: "system:node:n1", Organization: []string{"system:nodes"}},
	}, key)
	g.Expect(err).NotTo(HaveOccurred())
	csrs := admin.CertificatesV1().CertificateSigningRequests()
	csr, err := csrs.Create(ctx, &certificatesv1.CertificateSigningRequest{
		ObjectMeta: metav1.ObjectMeta{Name: "n1"},
		Spec: certificatesv1.CertificateSigningRequestSpec{
			Request:    pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der}),
			SignerName: certificatesv1.KubeAPIServerClientKubeletSignerName,
			Usages:     []certificatesv1.KeyUsage{certificatesv1.UsageDigitalSignature, certificatesv1.UsageClientAuth},
		},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	// The controller manager writes it as well, and may have approved it by now.
	g.Eventually(func() error {
		current, err := csrs.Get(ctx, csr.Name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if len(current.Status.Conditions) > 0 {
			return nil
		}
		current.Status.Conditions = append(current.Status.Conditions, certificatesv1.CertificateSigningRequestCondition{
			Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test", Message: "test",
		})
		_, err = csrs.UpdateApproval(ctx, csr.Name, current, metav1.UpdateOptions{})
		return err
	}).WithTimeout(waitFor).Should(Succeed())
	g.Eventually(func() (string, error) {
		csr, err := csrs.Get(ctx, "n1", metav1.GetOptions{})
		if err != nil {
			return "", err
		}
		return string(csr.Status.Certificate), nil
	}).WithTimeout(waitFor).Should(ContainSubstring("BEGIN CERTIFICATE"))
}

func testServiceAccount(ctx context.Context, t *testing.T, c *ControlPlane, admin kubernetes.Interface) {
	g := NewWithT(t)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Name: "manager", Namespace: "default"}}
	_, err := admin.CoreV1().ServiceAccounts("default").Create(ctx, account, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	content, err := c.ServiceAccountKubeconfig(ctx, "default", "manager")
	g.Expect(err).NotTo(HaveOccurred())
	config, err := restConfig(content)
	g.Expect(err).NotTo(HaveOccurred())
	manager := kubernetes.NewForConfigOrDie(config)
	g.Eventually(func() error {
		_, err := manager.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	}).WithTimeout(waitFor).Should(Satisfy(apierrors.IsForbidden))
	_, err = admin.RbacV1().ClusterRoleBindings().Create(ctx, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "manager"},
		Subjects:   []rbacv1.Subject{{Kind: "ServiceAccount", Namespace: "default", Name: "manager"}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:node"},
	}, metav1.CreateOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Eventually(func() error {
		_, err := manager.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		return err
	}).WithTimeout(waitFor).Should(Succeed())
}

func testOutage(ctx context.Context, t *testing.T, c *ControlPlane, admin kubernetes.Interface) {
	g := NewWithT(t)
	before, err := admin.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	c.StopAPIServer()
	_, err = admin.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	g.Expect(err).To(MatchError(ContainSubstring("connection refused")))
	g.Expect(c.StartAPIServer(ctx)).To(Succeed())
	after, err := admin.CoreV1().Namespaces().Get(ctx, metav1.NamespaceSystem, metav1.GetOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(after.UID).To(Equal(before.UID))
}

func TestStartFailsCleanly(t *testing.T) {
	g := NewWithT(t)
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	_, err := Start(context.Background(), Options{WithoutControllers: true, APIServerArgs: []string{"--no-such-flag"}})
	g.Expect(err).To(MatchError(And(ContainSubstring("kube-apiserver exited"), ContainSubstring("no-such-flag"))))
	g.Expect(os.ReadDir(tmp)).To(BeEmpty())
}

func TestContextEndsTheProcesses(t *testing.T) {
	g := NewWithT(t)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	c, err := Start(ctx, Options{WithoutControllers: true})
	g.Expect(err).NotTo(HaveOccurred())
	server := c.server
	cancel()
	g.Eventually(server.Done()).WithTimeout(waitFor).Should(BeClosed())
	g.Expect(c.Stop()).To(Succeed())
	g.Expect(c.Dir()).NotTo(BeADirectory())
}

func TestAssets(t *testing.T) {
	g := NewWithT(t)
	t.Setenv(AssetsEnv, "/some/directory")
	g.Expect(Assets()).To(Equal("/some/directory"))
	t.Setenv(AssetsEnv, "")
	t.Setenv(CacheEnv, t.TempDir())
	_, err := Assets()
	g.Expect(err).To(MatchError(ContainSubstring("make controlplane")))
}

func TestBuildEnvironment(t *testing.T) {
	g := NewWithT(t)
	env := buildEnvironment([]string{"HOME=/root", "GOFLAGS=-race", "CGO_ENABLED=1", "GOPROXY=direct", "GOGC=off"})
	g.Expect(strings.Join(env, " ")).To(Equal("HOME=/root GOPROXY=direct GOGC=off CGO_ENABLED=0 GOWORK=off"))
}
