package kubeconfig_test

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/util/cert"

	"millwright.dev/core/cluster/kubeconfig"
)

// now has whole seconds, as certificates do.
var now = time.Date(2030, 1, 2, 3, 4, 5, 0, time.UTC)

const day = 24 * time.Hour

// authority makes one that is good for a time.
func authority(t *testing.T, key crypto.Signer, years int) (certificate, private []byte) {
	t.Helper()
	g := NewWithT(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "kubernetes"}, IsCA: true, BasicConstraintsValid: true,
		NotBefore: now.Add(-day), NotAfter: now.AddDate(years, 0, 0), KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	g.Expect(err).NotTo(HaveOccurred())
	encoded, err := x509.MarshalPKCS8PrivateKey(key)
	g.Expect(err).NotTo(HaveOccurred())
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}), pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: encoded})
}

func ellipticKey(t *testing.T) crypto.Signer {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return key
}

func parsed(t *testing.T, certificate, key []byte) *kubeconfig.Authority {
	t.Helper()
	a, err := kubeconfig.ParseAuthority(certificate, key)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return a
}

// client is the client certificate of a kubeconfig, which the authority must have signed for the administrator.
func client(t *testing.T, content, authority []byte, at time.Time) *x509.Certificate {
	t.Helper()
	g := NewWithT(t)
	config, err := clientcmd.RESTConfigFromKubeConfig(content)
	g.Expect(err).NotTo(HaveOccurred())
	certificates, err := cert.ParseCertsPEM(config.CertData)
	g.Expect(err).NotTo(HaveOccurred())
	roots := x509.NewCertPool()
	g.Expect(roots.AppendCertsFromPEM(authority)).To(BeTrue())
	_, err = certificates[0].Verify(
		x509.VerifyOptions{Roots: roots, CurrentTime: at, KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(certificates[0].Subject.CommonName).To(Equal("kubernetes-admin"))
	g.Expect(certificates[0].Subject.Organization).To(ConsistOf("system:masters"))
	return certificates[0]
}

func TestMake(t *testing.T) {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	for name, key := range map[string]crypto.Signer{"RSA": private, "ECDSA": ellipticKey(t)} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			certificate, key := authority(t, key, 10)
			content, err := parsed(t, certificate, key).Make("c", "https://192.0.2.1:6443", now)
			g.Expect(err).NotTo(HaveOccurred())
			config, err := clientcmd.RESTConfigFromKubeConfig(content)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(config.Host).To(Equal("https://192.0.2.1:6443"))
			g.Expect(config.CAData).To(Equal(certificate))
			made := client(t, content, certificate, now)
			g.Expect(made.NotAfter).To(Equal(now.Add(kubeconfig.Validity)))
			g.Expect(made.NotBefore).To(Equal(now.Add(-day)), "an API server whose clock is behind accepts it")
		})
	}
}

func TestACertificateEndsWithItsAuthority(t *testing.T) {
	g := NewWithT(t)
	certificate, key := authority(t, ellipticKey(t), 0)
	a := parsed(t, certificate, key)
	content, err := a.Make("c", "https://192.0.2.1:6443", now.Add(-time.Hour))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client(t, content, certificate, now.Add(-time.Minute)).NotAfter).To(Equal(now))
	renewed, next, err := a.Renew(content, now.Add(-time.Minute))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(renewed).To(BeNil(), "another would be no better")
	g.Expect(next).To(BeZero())
}

func TestRenew(t *testing.T) {
	g := NewWithT(t)
	certificate, key := authority(t, ellipticKey(t), 10)
	a := parsed(t, certificate, key)
	content, err := a.Make("c", "https://192.0.2.1:6443", now)
	g.Expect(err).NotTo(HaveOccurred())
	due := now.Add(kubeconfig.Validity / 2)

	renewed, next, err := a.Renew(content, due.Add(-time.Second))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(renewed).To(BeNil())
	g.Expect(next).To(Equal(due))

	renewed, next, err = a.Renew(content, due)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(client(t, renewed, certificate, due).NotAfter).To(Equal(due.Add(kubeconfig.Validity)))
	g.Expect(next).To(Equal(due.Add(kubeconfig.Validity / 2)))
	config, err := clientcmd.RESTConfigFromKubeConfig(renewed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(config.Host).To(Equal("https://192.0.2.1:6443"), "the rest stays")
	again, _, err := a.Renew(renewed, due)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(BeNil(), "once is enough")

	without := parsed(t, certificate, nil)
	_, _, err = without.Renew(content, due)
	g.Expect(err).To(MatchError("it has no tls.key"))
	_, next, err = without.Renew(content, now)
	g.Expect(err).NotTo(HaveOccurred(), "as long as there is time")
	g.Expect(next).To(Equal(due))
}

func TestAForeignKubeconfigIsNotRenewed(t *testing.T) {
	g := NewWithT(t)
	certificate, key := authority(t, ellipticKey(t), 10)
	otherCertificate, otherKey := authority(t, ellipticKey(t), 10)
	others, err := parsed(t, otherCertificate, otherKey).Make("c", "https://192.0.2.1:6443", now)
	g.Expect(err).NotTo(HaveOccurred())
	for name, content := range map[string][]byte{
		"of another authority": others,
		"with a token": []byte(`{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
			"clusters":[{"name":"x","cluster":{"server":"https://192.0.2.1"}}],"users":[{"name":"x","user":{"token":"t"}}]}`),
		"without a user": []byte(`{"current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}]}`),
		"none":           []byte("no kubeconfig"), "empty": nil,
	} {
		renewed, next, err := parsed(t, certificate, key).Renew(content, now.Add(10*kubeconfig.Validity))
		g.Expect(err).NotTo(HaveOccurred(), name)
		g.Expect(renewed).To(BeNil(), name)
		g.Expect(next).To(BeZero(), name)
	}
}

func TestAuthoritiesThatCannotSign(t *testing.T) {
	g := NewWithT(t)
	certificate, key := authority(t, ellipticKey(t), 10)
	_, otherKey := authority(t, ellipticKey(t), 10)
	leaf, err := parsed(t, certificate, key).Make("c", "https://192.0.2.1:6443", now)
	g.Expect(err).NotTo(HaveOccurred())
	config, err := clientcmd.RESTConfigFromKubeConfig(leaf)
	g.Expect(err).NotTo(HaveOccurred())
	for want, pair := range map[string][2][]byte{
		"it has no tls.key": {certificate, nil}, "tls.key is not a private key": {certificate, []byte("secret-text")},
		"tls.key does not belong to tls.crt": {certificate, otherKey},
		"tls.crt is not a CA certificate":    {config.CertData, config.KeyData},
	} {
		_, err := parsed(t, pair[0], pair[1]).Make("c", "https://192.0.2.1:6443", now)
		g.Expect(err).To(MatchError(want))
	}
	_, err = kubeconfig.ParseAuthority([]byte("secret-text"), key)
	g.Expect(err).To(MatchError("tls.crt is not a certificate"))
}
