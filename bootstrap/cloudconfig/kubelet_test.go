package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/node"
	"millwright.dev/test/controlplane"
)

// authority signs what this test hands out: it plays the target cluster's.
type authority struct {
	t           *testing.T
	key         *ecdsa.PrivateKey
	certificate *x509.Certificate
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{t: t}
	template := &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority of a test"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	var err error
	if a.key, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader); err != nil {
		t.Fatal(err)
	}
	a.certificate = a.sign(template, template, a.key.Public())
	return a
}

func (a *authority) sign(template, parent *x509.Certificate, public any) *x509.Certificate {
	a.t.Helper()
	template.SerialNumber = big.NewInt(time.Now().UnixNano())
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, template, parent, public, a.key)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate, err := x509.ParseCertificate(raw)
	if err != nil {
		a.t.Fatal(err)
	}
	return certificate
}

// user returns a client certificate.
func (a *authority) user(name string) tls.Certificate {
	a.t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		a.t.Fatal(err)
	}
	certificate := a.sign(&x509.Certificate{
		Subject: pkix.Name{CommonName: name}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public())
	return tls.Certificate{Certificate: [][]byte{certificate.Raw}, PrivateKey: key}
}

// serve approves and signs the kubelet's request for a serving certificate, as a user has to.
func (a *authority) serve(g Gomega, admin client.Client, nodeName string) {
	requests := &certificatesv1.CertificateSigningRequestList{}
	g.Expect(admin.List(a.t.Context(), requests)).To(Succeed())
	for i := range requests.Items {
		request := &requests.Items[i]
		block, _ := pem.Decode(request.Spec.Request)
		parsed, err := x509.ParseCertificateRequest(block.Bytes)
		g.Expect(err).NotTo(HaveOccurred())
		if request.Spec.SignerName != certificatesv1.KubeletServingSignerName || parsed.Subject.CommonName != "system:node:"+nodeName {
			continue
		}
		request.Status.Conditions = []certificatesv1.CertificateSigningRequestCondition{
			{Type: certificatesv1.CertificateApproved, Status: corev1.ConditionTrue, Reason: "Test"},
		}
		g.Expect(admin.SubResource("approval").Update(a.t.Context(), request)).To(Succeed())
		certificate := a.sign(&x509.Certificate{
			Subject:     parsed.Subject,
			DNSNames:    parsed.DNSNames,
			IPAddresses: parsed.IPAddresses,
			ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		}, a.certificate, parsed.PublicKey)
		request.Status.Certificate = a.pem(certificate)
		g.Expect(admin.Status().Update(a.t.Context(), request)).To(Succeed())
		return
	}
	g.Expect(requests.Items).To(BeEmpty(), "none of them is for Node %s", nodeName)
	g.Expect("no request for a serving certificate").To(BeEmpty())
}

func (a *authority) pem(certificate *x509.Certificate) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Raw})
}

// A kubelet with the configuration that a machine gets asks for a serving certificate, and admits no client that the API server
// does not know and allow. It is the real kubelet's server, on a runtime without containers.
func TestTheRealKubeletRefusesAnonymousRequests(t *testing.T) {
	g := NewWithT(t)
	admin, err := client.New(env.Config, client.Options{Scheme: scheme, Mapper: env.Mapper})
	g.Expect(err).NotTo(HaveOccurred())
	port := freePort(t)
	config, err := node.KubeletConfigFile(node.KubeletOptions{NodeName: "closed", Spec: bootstrapv1.KubeletSpec{
		Config: &runtime.RawExtension{Raw: fmt.Appendf(nil, `{"address":"127.0.0.1","port":%d}`, port)},
	}})
	g.Expect(err).NotTo(HaveOccurred())
	ca, dir := newAuthority(t), t.TempDir()
	for name, content := range map[string][]byte{"config.yaml": config, "ca.crt": ca.pem(ca.certificate), "kubeconfig": env.Kubeconfig} {
		g.Expect(os.WriteFile(filepath.Join(dir, name), content, 0o600)).To(Succeed())
	}
	startKubelet(t, dir, "closed")
	g.Eventually(func(g Gomega) { ca.serve(g, admin, "closed") }, time.Minute).Should(Succeed())

	get := func(path string, certificates ...tls.Certificate) (int, error) {
		pool := x509.NewCertPool()
		pool.AddCert(ca.certificate)
		transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "closed", Certificates: certificates}}
		defer transport.CloseIdleConnections()
		response, err := (&http.Client{Transport: transport}).Get(fmt.Sprintf("https://127.0.0.1:%d%s", port, path))
		if err != nil {
			return 0, err
		}
		return response.StatusCode, response.Body.Close()
	}
	g.Eventually(func() (int, error) { return get("/pods") }, time.Minute).Should(Equal(http.StatusUnauthorized))
	for _, path := range []string{"/logs/", "/exec/a/b/c", "/metrics", "/healthz", "/configz"} {
		g.Expect(get(path)).To(Equal(http.StatusUnauthorized), path)
	}
	g.Expect(get("/pods", ca.user("known"))).To(Equal(http.StatusForbidden), "authenticated is not authorized")
	g.Expect(get("/pods", newAuthority(t).user("reader"))).To(Equal(http.StatusUnauthorized), "of another authority")
	g.Expect(admin.Create(t.Context(), &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{
			Name: "kubelet-test-reader",
		},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: "reader"}},
		RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "system:kubelet-api-admin"},
	})).To(Succeed())
	g.Eventually(func() (int, error) { return get("/pods", ca.user("reader")) }, time.Minute).Should(Equal(http.StatusOK))
}

func startKubelet(t *testing.T, dir, name string) {
	t.Helper()
	assets, err := controlplane.Assets()
	if err != nil {
		t.Fatal(err)
	}
	log, err := os.Create(filepath.Join(dir, "log"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(filepath.Join(assets, "hollow-kubelet"), "--config="+filepath.Join(dir, "config.yaml"),
		"--kubeconfig="+filepath.Join(dir, "kubeconfig"), "--cert-dir="+filepath.Join(dir, "pki"), "--root-dir="+dir, "--hostname-override="+name)
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		_ = log.Close()
		if t.Failed() {
			content, _ := os.ReadFile(log.Name())
			t.Logf("the kubelet logged:\n%s", content[max(0, len(content)-4000):])
		}
	})
}

func freePort(t *testing.T) int {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = listener.Close() }()
	return listener.Addr().(*net.TCPAddr).Port
}
