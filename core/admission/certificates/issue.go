package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"time"

	"github.com/open-policy-agent/cert-controller/pkg/rotator"
	"github.com/pkg/errors"
)

// backdate makes a new certificate valid a little before now, for clocks that are behind.
const backdate = time.Hour

// issuer makes and checks certificates.
type issuer struct {
	library *rotator.CertRotator
}

// newIssuer makes an issuer for a server with the given names.
func newIssuer(names []string) issuer {
	return issuer{&rotator.CertRotator{
		CAName: "millwright-core-webhook-ca", CAOrganization: "millwright",
		DNSName: names[0], ExtraDNSNames: names[1:],
		ExtKeyUsages: &[]x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}}
}

// newAuthority makes an authority that signs itself.
func (i issuer) newAuthority(now time.Time, lifetime time.Duration) (pair, error) {
	made, err := i.library.CreateCACert(now.Add(-backdate), now.Add(lifetime))
	if err != nil {
		return pair{}, errors.Wrap(err, "creating a certificate authority")
	}
	return pair{made.CertPEM, made.KeyPEM}, nil
}

// newServing creates a serving certificate that does not outlive its authority.
func (i issuer) newServing(authority pair, now time.Time, lifetime time.Duration) (pair, error) {
	certificate, err := parse(authority)
	if err != nil {
		return pair{}, err
	}
	block, _ := pem.Decode(authority.key)
	if block == nil {
		return pair{}, errors.New("the key of the certificate authority is not PEM")
	}
	key, err := x509.ParsePKCS1PrivateKey(block.Bytes)
	if err != nil {
		return pair{}, errors.Wrap(err, "reading the key of the certificate authority")
	}
	end := now.Add(lifetime)
	if end.After(certificate.NotAfter) {
		end = certificate.NotAfter
	}
	signer := &rotator.KeyPairArtifacts{Cert: certificate, Key: key, CertPEM: authority.certificate, KeyPEM: authority.key}
	made, madeKey, err := i.library.CreateCertPEM(signer, now.Add(-backdate), end)
	return pair{made, madeKey}, errors.Wrap(err, "creating a serving certificate")
}

// validAuthority reports whether a pair can sign now.
func (i issuer) validAuthority(p pair, now time.Time) bool {
	valid, err := rotator.ValidCert(p.certificate, p.certificate, p.key, i.library.CAName, nil, now)
	return err == nil && valid
}

// validServing reports whether a pair serves all names now, signed by the authority.
func (i issuer) validServing(p, authority pair, now time.Time) bool {
	for _, name := range append([]string{i.library.DNSName}, i.library.ExtraDNSNames...) {
		if valid, err := rotator.ValidCert(authority.certificate, p.certificate, p.key, name, i.library.ExtKeyUsages, now); err != nil || !valid {
			return false
		}
	}
	return true
}

// parse reads the certificate of a pair.
func parse(p pair) (*x509.Certificate, error) {
	block, _ := pem.Decode(p.certificate)
	if block == nil {
		return nil, errors.New("a certificate is not PEM")
	}
	certificate, err := x509.ParseCertificate(block.Bytes)
	return certificate, errors.Wrap(err, "reading a certificate")
}
