package certificates

import (
	"crypto/x509"
	"encoding/pem"
	"maps"
	"testing"
	"time"

	. "github.com/onsi/gomega"
)

var (
	noon  = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	names = []string{"core.ns.svc", "localhost"}
	life  = Lifetimes{Authority: 90 * time.Hour, Serving: 30 * time.Hour}
)

// verify verifies as an API server does.
func verify(data map[string][]byte, name string, at time.Time) error {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(data[authorityKey])
	block, _ := pem.Decode(data[servingKey])
	serving, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return err
	}
	_, err = serving.Verify(x509.VerifyOptions{DNSName: name, Roots: roots, CurrentTime: at})
	return err
}

func renewed(t *testing.T, data map[string][]byte, at time.Time) map[string][]byte {
	t.Helper()
	data, err := newIssuer(names, life).renew(data, at)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return data
}

func TestRenew_NoContent_ServesAllNames(t *testing.T) {
	g := NewWithT(t)
	data := renewed(t, nil, noon)
	for _, name := range names {
		g.Expect(verify(data, name, noon)).To(Succeed())
	}
	g.Expect(verify(data, "other", noon)).NotTo(Succeed())
	g.Expect(newIssuer(names, life).due(data, noon)).To(BeTemporally("==", noon.Add(20*time.Hour)), "two thirds of the certificate's life")
}

// TestRenew: the serving certificate is renewed when it is due or does not fit; the authority only if it cannot sign another one.
func TestRenew(t *testing.T) {
	first, other := renewed(t, nil, noon), renewed(t, nil, noon)
	with := func(key string, value []byte) map[string][]byte {
		data := maps.Clone(first)
		data[key] = value
		return data
	}
	otherNames, err := newIssuer([]string{"core.other.svc"}, life).renew(first, noon)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	otherServing := with(servingKey, other[servingKey])
	otherServing[servingPrivateKey] = other[servingPrivateKey]
	for name, test := range map[string]struct {
		data               map[string][]byte
		after              time.Duration
		serving, authority bool
	}{
		"all well":                               {data: first},
		"a second authority of an older version": {data: with("next-ca.crt", other[authorityKey])},
		"due":                                    {data: first, after: 20 * time.Hour, serving: true},
		"expired":                                {data: first, after: 31 * time.Hour, serving: true},
		"broken serving certificate":             {data: with(servingKey, []byte("x")), serving: true},
		"serving key does not fit":               {data: with(servingPrivateKey, other[servingPrivateKey]), serving: true},
		"signed by another authority":            {data: otherServing, serving: true},
		"other names":                            {data: otherNames, serving: true},
		"no authority":                           {data: with(authorityKey, nil), serving: true, authority: true},
		"broken authority":                       {data: with(authorityKey, []byte("x")), serving: true, authority: true},
		"authority key does not fit":             {data: with(authorityPrivateKey, other[authorityPrivateKey]), serving: true, authority: true},
		"authority cannot sign another":          {data: with(authorityPrivateKey, []byte("x")), serving: true, authority: true},
		"authority ends before the next one":     {data: first, after: 61 * time.Hour, serving: true, authority: true},
		"authority has expired":                  {data: first, after: 91 * time.Hour, serving: true, authority: true},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			at := noon.Add(test.after)
			data := renewed(t, test.data, at)
			if !test.serving {
				g.Expect(data).To(BeNil())
				return
			}
			for _, name := range names {
				g.Expect(verify(data, name, at)).To(Succeed())
			}
			g.Expect(string(data[authorityKey]) != string(first[authorityKey])).To(Equal(test.authority))
			g.Expect(renewed(t, data, at)).To(BeNil())
		})
	}
}
