// Package kubeconfig makes the kubeconfig of a Cluster with its certificate authority, as Cluster API's core does where no control plane
// provider does it, and renews the client certificate in it.
package kubeconfig

import (
	"bytes"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"slices"
	"time"

	"github.com/pkg/errors"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/client-go/util/cert"
	"k8s.io/client-go/util/keyutil"
)

const (
	// Validity is how long a client certificate is good, unless the authority ends before.
	Validity = 365 * 24 * time.Hour
	// renewBefore is how long before its end it is renewed.
	renewBefore = Validity / 2

	// Who the client is for the API server of the target cluster: the same as with Cluster API's core.
	user, group = "kubernetes-admin", "system:masters"
)

// Authority signs client certificates of a target cluster.
type Authority struct {
	certificate *x509.Certificate
	key         crypto.Signer
	// unusable is why it cannot sign; nil when it can.
	unusable error
}

// ParseAuthority reads certificate and private key, as PEM. An authority without a key, which is kept elsewhere, knows what it has signed
// and signs nothing. Errors repeat nothing of the content.
func ParseAuthority(certificate, key []byte) (*Authority, error) {
	certificates, err := cert.ParseCertsPEM(certificate)
	if err != nil {
		return nil, errors.New("tls.crt is not a certificate")
	}
	a := &Authority{certificate: certificates[0]}
	parsed, err := keyutil.ParsePrivateKeyPEM(key)
	signer, ok := parsed.(crypto.Signer)
	switch {
	case len(key) == 0:
		a.unusable = errors.New("it has no tls.key")
	case err != nil || !ok:
		a.unusable = errors.New("tls.key is not a private key")
	case !a.certificate.IsCA:
		a.unusable = errors.New("tls.crt is not a CA certificate")
	case !ofOnePair(a.certificate, signer):
		a.unusable = errors.New("tls.key does not belong to tls.crt")
	}
	a.key = signer
	return a, nil
}

func ofOnePair(certificate *x509.Certificate, key crypto.Signer) bool {
	public, ok := key.Public().(interface{ Equal(crypto.PublicKey) bool })
	return ok && public.Equal(certificate.PublicKey)
}

// Make creates a kubeconfig for the administrator of a target cluster.
func (a *Authority) Make(cluster, server string, now time.Time) ([]byte, error) {
	config, name := clientcmdapi.NewConfig(), cluster+"-admin"
	config.CurrentContext = name + "@" + cluster
	config.Contexts[config.CurrentContext] = &clientcmdapi.Context{Cluster: cluster, AuthInfo: name}
	config.Clusters[cluster] = &clientcmdapi.Cluster{
		Server:                   server,
		CertificateAuthorityData: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: a.certificate.Raw}),
	}
	var err error
	if config.AuthInfos[name], err = a.sign(now); err != nil {
		return nil, err
	}
	content, err := clientcmd.Write(*config)
	return content, errors.Wrap(err, "encoding the kubeconfig")
}

// Renew returns the kubeconfig with a new client certificate, and nil while it is good. next is when to look again; zero if never, as where
// the client certificate is not one that a core has issued with this authority: then the kubeconfig has another owner.
func (a *Authority) Renew(content []byte, now time.Time) (renewed []byte, next time.Time, err error) {
	config, name := load(content)
	if config == nil || !a.made(config.AuthInfos[name]) {
		return nil, time.Time{}, nil
	}
	end := endOf(config.AuthInfos[name])
	if due := end.Add(-renewBefore); now.Before(due) {
		return nil, due, nil
	}
	if !a.end(now).After(end) {
		// One that is signed now would not be good for longer: the authority ends.
		return nil, time.Time{}, nil
	}
	if config.AuthInfos[name], err = a.sign(now); err != nil {
		return nil, time.Time{}, err
	}
	if renewed, err = clientcmd.Write(*config); err != nil {
		return nil, time.Time{}, errors.Wrap(err, "encoding the kubeconfig")
	}
	return renewed, endOf(config.AuthInfos[name]).Add(-renewBefore), nil
}

// load returns a kubeconfig and the name of its current user; nil if it has none.
func load(content []byte) (*clientcmdapi.Config, string) {
	config, err := clientcmd.Load(content)
	if err != nil || config.Contexts[config.CurrentContext] == nil {
		return nil, ""
	}
	name := config.Contexts[config.CurrentContext].AuthInfo
	if config.AuthInfos[name] == nil {
		return nil, ""
	}
	return config, name
}

// made reports whether the client certificate is one that a core issues with this authority.
func (a *Authority) made(info *clientcmdapi.AuthInfo) bool {
	certificates, err := cert.ParseCertsPEM(info.ClientCertificateData)
	if err != nil {
		return false
	}
	client := certificates[0]
	return client.Subject.CommonName == user && slices.Equal(client.Subject.Organization, []string{group}) &&
		bytes.Equal(client.RawIssuer, a.certificate.RawSubject) && client.CheckSignatureFrom(a.certificate) == nil
}

func endOf(info *clientcmdapi.AuthInfo) time.Time {
	certificates, err := cert.ParseCertsPEM(info.ClientCertificateData)
	if err != nil {
		return time.Time{}
	}
	return certificates[0].NotAfter
}

// end is until when a certificate is good that is signed now. Certificates have whole seconds.
func (a *Authority) end(now time.Time) time.Time {
	end := now.Add(Validity).Truncate(time.Second)
	if end.After(a.certificate.NotAfter) {
		return a.certificate.NotAfter
	}
	return end
}

// sign creates a key and a client certificate.
func (a *Authority) sign(now time.Time) (*clientcmdapi.AuthInfo, error) {
	if a.unusable != nil {
		return nil, a.unusable
	}
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, errors.Wrap(err, "generating a private key")
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 127))
	if err != nil {
		return nil, errors.Wrap(err, "generating a serial number")
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: serial, Subject: pkix.Name{CommonName: user, Organization: []string{group}},
		// As early as the authority: the clock of the API server may be behind.
		NotBefore: a.certificate.NotBefore, NotAfter: a.end(now),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}, a.certificate, key.Public(), a.key)
	if err != nil {
		return nil, errors.Wrap(err, "signing a client certificate")
	}
	encoded, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return nil, errors.Wrap(err, "encoding a private key")
	}
	return &clientcmdapi.AuthInfo{
		ClientCertificateData: pem.EncodeToMemory(&pem.Block{Type: cert.CertificateBlockType, Bytes: der}),
		ClientKeyData:         pem.EncodeToMemory(&pem.Block{Type: keyutil.ECPrivateKeyBlockType, Bytes: encoded}),
	}, nil
}
