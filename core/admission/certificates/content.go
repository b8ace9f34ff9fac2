package certificates

import (
	"bytes"
	"crypto/x509"
	"encoding/pem"
	"slices"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
)

// Keys of the Secret. tls.crt, tls.key and ca.crt mean what they mean in Secrets of others.
const (
	servingCertificateKey = corev1.TLSCertKey
	servingPrivateKey     = corev1.TLSPrivateKeyKey
	authorityKey          = "ca.crt"
	authorityPrivateKey   = "ca.key"
	nextKey               = "next-ca.crt"
	nextPrivateKey        = "next-ca.key"
	trustedKey            = "trusted.crt"
)

// pair is a certificate and its private key, both PEM.
type pair struct {
	certificate, key []byte
}

func (p pair) empty() bool { return len(p.certificate) == 0 && len(p.key) == 0 }

// content is what the Secret holds.
type content struct {
	// serving is what the webhook server shows; authority has signed it.
	serving, authority pair
	// next will replace authority once it is trusted everywhere. It is empty most of the time.
	next pair
	// trusted are the certificates by which API servers are to verify: authority, next, and former authorities until
	// they expire. PEM, one after the other.
	trusted []byte
}

func readContent(data map[string][]byte) content {
	return content{
		serving:   pair{data[servingCertificateKey], data[servingPrivateKey]},
		authority: pair{data[authorityKey], data[authorityPrivateKey]},
		next:      pair{data[nextKey], data[nextPrivateKey]},
		trusted:   data[trustedKey],
	}
}

// foreign reports whether a Secret was filled by another controller: the core writes no certificate without what is trusted. An empty one
// has no owner.
func foreign(secret *corev1.Secret) bool {
	_, own := secret.Data[trustedKey]
	return len(secret.Data) > 0 && !own
}

// errForeign reports what to do about such a Secret.
func errForeign(s *Settings) error {
	return errors.Errorf("Secret %s was not written by the core: delete it, or have it written under another name", s.Secret)
}

func (c content) data() map[string][]byte {
	data := map[string][]byte{
		servingCertificateKey: c.serving.certificate, servingPrivateKey: c.serving.key,
		authorityKey: c.authority.certificate, authorityPrivateKey: c.authority.key,
		trustedKey: c.trusted,
	}
	if !c.next.empty() {
		data[nextKey], data[nextPrivateKey] = c.next.certificate, c.next.key
	}
	return data
}

// trust gives the content the authorities that are to be trusted: its own two, and those former ones that are still
// valid. The order is stable, so that the same authorities are the same bytes: a new one is the last.
func (c content) trust(now time.Time) content {
	var trusted [][]byte
	add := func(certificate []byte) {
		if len(certificate) > 0 && !slices.ContainsFunc(trusted, func(known []byte) bool { return bytes.Equal(known, certificate) }) {
			trusted = append(trusted, certificate)
		}
	}
	for rest := c.trusted; len(rest) > 0; {
		var block *pem.Block
		if block, rest = pem.Decode(rest); block == nil {
			break
		}
		if former, err := x509.ParseCertificate(block.Bytes); err == nil && now.Before(former.NotAfter) {
			add(pem.EncodeToMemory(block))
		}
	}
	add(c.authority.certificate)
	add(c.next.certificate)
	c.trusted = bytes.Join(trusted, nil)
	return c
}
