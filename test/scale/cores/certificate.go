package cores

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"
)

// certificateValidity is longer than any benchmark.
const certificateValidity = 24 * time.Hour

// EnsureCertificate creates a self-signed certificate for the webhook server: a core does not start
// without one, though the benchmark's API server calls no webhook.
func EnsureCertificate(dir string) error {
	if _, err := os.Stat(filepath.Join(dir, "tls.crt")); err == nil {
		return nil
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return errors.Wrap(err, "generating the key of the webhook server")
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1),
		Subject:      pkix.Name{CommonName: "webhook"},
		DNSNames:     []string{"localhost"},
		NotBefore:    time.Now().Add(-time.Minute),
		NotAfter:     time.Now().Add(certificateValidity),
		KeyUsage:     x509.KeyUsageDigitalSignature,
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	certificate, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return errors.Wrap(err, "signing the certificate of the webhook server")
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return errors.Wrap(err, "encoding the key of the webhook server")
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return errors.Wrap(err, "creating the directory of the webhook server's certificate")
	}
	for name, block := range map[string]*pem.Block{
		"tls.key": {Type: "EC PRIVATE KEY", Bytes: der},
		"tls.crt": {Type: "CERTIFICATE", Bytes: certificate},
	} {
		if err := os.WriteFile(filepath.Join(dir, name), pem.EncodeToMemory(block), 0o600); err != nil {
			return errors.Wrapf(err, "writing %s", name)
		}
	}
	return nil
}
