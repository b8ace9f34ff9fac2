package diagnostics

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
)

func parsed(g *WithT, arguments ...string) *Options {
	o := &Options{}
	flags := pflag.NewFlagSet("test", pflag.ContinueOnError)
	o.AddFlags(flags)
	g.Expect(flags.Parse(arguments)).To(Succeed())
	return o
}

func TestServerIsSecureByDefault(t *testing.T) {
	g := NewWithT(t)
	server, err := parsed(g).Server()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.BindAddress).To(Equal(":8443"))
	g.Expect(server.SecureServing).To(BeTrue())
	g.Expect(server.FilterProvider).NotTo(BeNil())
	g.Expect(server.ExtraHandlers).To(HaveKey("/debug/pprof/"))
	config := &tls.Config{}
	server.TLSOpts[0](config)
	g.Expect(config.MinVersion).To(BeEquivalentTo(tls.VersionTLS12))
	g.Expect(config.CipherSuites).To(BeNil())
}

func TestServerWithTLSFlags(t *testing.T) {
	g := NewWithT(t)
	server, err := parsed(
		g,
		"--tls-min-version=VersionTLS13",
		"--tls-cipher-suites=TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256",
		"--tls-curve-preferences=29",
	).Server()
	g.Expect(err).NotTo(HaveOccurred())
	config := &tls.Config{}
	server.TLSOpts[0](config)
	g.Expect(config.MinVersion).To(BeEquivalentTo(tls.VersionTLS13))
	g.Expect(config.CipherSuites).To(Equal([]uint16{tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256}))
	g.Expect(config.CurvePreferences).To(Equal([]tls.CurveID{tls.X25519}))

	_, err = parsed(g, "--tls-min-version=SSLv3").Server()
	g.Expect(err).To(MatchError(ContainSubstring("--tls-min-version")))
	_, err = parsed(g, "--tls-cipher-suites=NONE").Server()
	g.Expect(err).To(MatchError(ContainSubstring("--tls-cipher-suites")))
}

// Without a filter there is nothing to be found but metrics.
func TestInsecureServerHasMetricsAlone(t *testing.T) {
	g := NewWithT(t)
	server, err := parsed(g, "--insecure-diagnostics", "--diagnostics-address=127.0.0.1:1").Server()
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(server.BindAddress).To(Equal("127.0.0.1:1"))
	g.Expect(server.SecureServing).To(BeFalse())
	g.Expect(server.ExtraHandlers).To(BeEmpty())
}

func TestSetLevel(t *testing.T) {
	g := NewWithT(t)
	put := func(method, body string) int {
		recorder := httptest.NewRecorder()
		setLevel(recorder, httptest.NewRequest(method, "/debug/flags/v", strings.NewReader(body)))
		return recorder.Code
	}
	g.Expect(put(http.MethodPut, "3\n")).To(Equal(http.StatusNoContent))
	g.Expect(put(http.MethodPut, "0")).To(Equal(http.StatusNoContent))
	g.Expect(put(http.MethodPut, "loud")).To(Equal(http.StatusBadRequest))
	g.Expect(put(http.MethodGet, "")).To(Equal(http.StatusMethodNotAllowed))
}
