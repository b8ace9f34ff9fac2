package cluster_test

import (
	"crypto/tls"
	"encoding/base64"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/util/cert"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// rotating is the way to the API server of the tests by a server whose certificate and token are replaced.
type rotating struct {
	*httptest.Server
	certificate atomic.Pointer[tls.Certificate]
	token       atomic.Pointer[string]
	open        atomic.Int32
}

func newRotating(t *testing.T) *rotating {
	t.Helper()
	g, r := NewWithT(t), &rotating{}
	transport, err := rest.TransportFor(core.Env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	origin, err := url.Parse(core.Env.Config.Host)
	g.Expect(err).NotTo(HaveOccurred())
	proxy := &httputil.ReverseProxy{
		Transport: transport, FlushInterval: -1, ErrorLog: log.New(io.Discard, "", 0),
		Rewrite: func(request *httputil.ProxyRequest) {
			request.SetURL(origin)
			request.Out.Header.Del("Authorization")
		},
	}
	r.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, request *http.Request) {
		if request.Header.Get("Authorization") != "Bearer "+*r.token.Load() {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		proxy.ServeHTTP(w, request)
	}))
	r.Config.ErrorLog = log.New(io.Discard, "", 0)
	r.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		switch state {
		case http.StateNew:
			r.open.Add(1)
		case http.StateClosed, http.StateHijacked:
			r.open.Add(-1)
		}
	}
	r.TLS = &tls.Config{GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		return &tls.Config{Certificates: []tls.Certificate{*r.certificate.Load()}, NextProtos: []string{"h2", "http/1.1"}}, nil
	}}
	r.EnableHTTP2 = true
	t.Cleanup(func() {
		r.CloseClientConnections()
		r.Close()
	})
	return r
}

// accept has the server show another certificate from now on and accept that token alone. It returns the authority of the certificate.
func (r *rotating) accept(t *testing.T, token string) (authority []byte) {
	t.Helper()
	g := NewWithT(t)
	authority, key, err := cert.GenerateSelfSignedCertKey("127.0.0.1", []net.IP{net.IPv4(127, 0, 0, 1)}, nil)
	g.Expect(err).NotTo(HaveOccurred())
	pair, err := tls.X509KeyPair(authority, key)
	g.Expect(err).NotTo(HaveOccurred())
	r.certificate.Store(&pair)
	r.token.Store(ptr.To(token))
	return authority
}

// kubeconfig trusts an authority and has a token.
func (r *rotating) kubeconfig(authority []byte, token string) []byte {
	return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":%q,"certificate-authority-data":%q}}],"users":[{"name":"x","user":{"token":%q}}]}`,
		r.URL, base64.StdEncoding.EncodeToString(authority), token)
}

// TestARotationOfAuthorityAndToken: the target cluster gets another certificate authority and another token while it is connected. The
// condition says what the kubeconfig lacks, whatever wrong ones come first; the right one is used as soon as it is there, and however
// many there have been, no connection of an earlier one is left.
func TestARotationOfAuthorityAndToken(t *testing.T) {
	g := NewWithT(t)
	namespace := core.Namespace(t)
	server := newRotating(t)
	first := server.accept(t, "one")
	server.StartTLS()
	cluster := &clusterv1.Cluster{Spec: clusterv1.ClusterSpec{Paused: ptr.To(false)}}
	cluster.Namespace, cluster.Name = namespace, "c"
	core.Create(t, cluster)
	core.Kubeconfig(t, namespace, "c", server.kubeconfig(first, "one"))
	const untrusted, refused = "certificate signed by unknown authority", "does not accept the credentials"
	see := func(when, status, says string) {
		t.Helper()
		eventually(t, cluster, func(g Gomega, c *clusterv1.Cluster) {
			g.Expect(condition(c, "RemoteConnectionProbe")).To(HavePrefix(status), when)
			g.Expect(message(c, "RemoteConnectionProbe")).To(ContainSubstring(says), when)
		})
	}
	see("at first", "True/", "")

	second := server.accept(t, "two")
	server.CloseClientConnections()
	see("the kubeconfig is the old one", "False/ProbeFailed", untrusted)
	rotate(t, namespace, server.kubeconfig(second, "one"))
	see("the token is the old one", "False/ProbeFailed", refused)
	rotate(t, namespace, server.kubeconfig(first, "two"))
	see("the authority is the old one", "False/ProbeFailed", untrusted)
	rotate(t, namespace, server.kubeconfig(second, "two"))
	see("both are right", "True/", "")

	for i := range 3 {
		wrong := fmt.Sprintf("wrong-%d", i)
		rotate(t, namespace, server.kubeconfig(second, wrong))
		see(wrong, "False/ProbeFailed", refused)
		authority := server.accept(t, "two")
		rotate(t, namespace, server.kubeconfig(authority, "two"))
		see("after "+wrong, "True/", "")
		second = authority
	}
	g.Eventually(server.open.Load).WithTimeout(timeout).Should(BeNumerically("<=", 2))
}
