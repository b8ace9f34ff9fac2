package certificates

import (
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret. tls.crt, tls.key and ca.crt mean what they mean in Secrets of cert-manager.
const (
	servingKey          = corev1.TLSCertKey
	servingPrivateKey   = corev1.TLSPrivateKeyKey
	authorityKey        = "ca.crt"
	authorityPrivateKey = "ca.key"
)

// Lifetimes are how long certificates are valid.
type Lifetimes struct {
	// Authority is the life of the certificate authority.
	Authority time.Duration
	// Serving is the life of the serving certificate, which is renewed when a third of it is left.
	Serving time.Duration
}

// DefaultLifetimes are used where no others are set.
var DefaultLifetimes = Lifetimes{Authority: 10 * 365 * 24 * time.Hour, Serving: 30 * 24 * time.Hour}

// backdate makes a new certificate valid a little before now, for clocks that are behind.
const backdate = time.Hour

// issuer creates and checks the content of the Secret.
type issuer struct {
	library *rotator.CertRotator
	names   []string
	life    Lifetimes
}

// newIssuer returns an issuer for a server with the given names.
func newIssuer(names []string, life Lifetimes) issuer {
	return issuer{names: names, life: life, library: &rotator.CertRotator{
		CAName: "millwright-core-webhook-ca", CAOrganization: "millwright",
		DNSName: names[0], ExtraDNSNames: names[1:],
		ExtKeyUsages: &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}}
}

// renew returns the content with a new serving certificate, or nothing before that is due. An authority that cannot sign, or ends before
// the new certificate, is replaced as well.
func (i issuer) renew(data map[string][]byte, now time.Time) (map[string][]byte, error) {
	if now.Before(i.due(data, now)) {
		return nil, nil
	}
	end := now.Add(i.life.Serving)
	authority := i.authority(data, end)
	if authority == nil {
		var err error
		if authority, err = i.library.CreateCACert(now.Add(-backdate), now.Add(i.life.Authority)); err != nil {
			return nil, errors.Wrap(err, "creating a certificate authority")
		}
	}
	serving, key, err := i.library.CreateCertPEM(authority, now.Add(-backdate), end)
	return map[string][]byte{
		servingKey: serving, servingPrivateKey: key, authorityKey: authority.CertPEM, authorityPrivateKey: authority.KeyPEM,
	}, errors.Wrap(err, "creating a serving certificate")
}

// due returns when to renew the content: at once unless the authority can sign, and has signed a certificate for each name.
func (i issuer) due(data map[string][]byte, now time.Time) time.Time {
	serving, err := tls.X509KeyPair(data[servingKey], data[servingPrivateKey])
	if err != nil || i.authority(data, now) == nil {
		return time.Time{}
	}
	for _, name := range i.names {
		if valid, err := rotator.ValidCert(data[authorityKey], data[servingKey], data[servingPrivateKey], name, nil, now); err != nil || !valid {
			return time.Time{}
		}
	}
	return serving.Leaf.NotAfter.Add(-i.life.Serving / 3)
}

// authority returns the authority of the content; nil if it cannot sign, or is not valid at the given time.
func (i issuer) authority(data map[string][]byte, at time.Time) *rotator.KeyPairArtifacts {
	certificate, key := data[authorityKey], data[authorityPrivateKey]
	if valid, err := rotator.ValidCert(certificate, certificate, key, i.library.CAName, nil, at); err != nil || !valid {
		return nil
	}
	parsed, err := tls.X509KeyPair(certificate, key)
	private, ok := parsed.PrivateKey.(*rsa.PrivateKey)
	if err != nil || !ok {
		return nil
	}
	return &rotator.KeyPairArtifacts{Cert: parsed.Leaf, Key: private, CertPEM: certificate, KeyPEM: key}
}
