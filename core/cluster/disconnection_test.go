package cluster_test

import (
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestProbeNamesServerAndCause: the condition of a Cluster that cannot be reached reports where and why, and no
// credentials.
func TestProbeNamesServerAndCause(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	closed := listener.Addr().String()
	NewWithT(t).Expect(listener.Close()).To(Succeed())
	broken := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadGateway)
		_, _ = w.Write([]byte(strings.Repeat("no upstream. ", 10000)))
	}))
	t.Cleanup(broken.Close)
	refusing := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))
	t.Cleanup(refusing.Close)
	for name, test := range map[string]struct {
		server string
		want   []string
	}{
		"nothing listens": {"https://" + closed, []string{"at " + closed, "connection refused"}},
		"no such host":    {"https://no-such-host.invalid:6443", []string{"at no-such-host.invalid:6443", "no-such-host.invalid"}},
		"a proxy fails":   {broken.URL, []string{"HTTP status 502", "at " + strings.TrimPrefix(broken.URL, "http://")}},
		"it refuses us":   {refusing.URL, []string{"does not accept the credentials", "at " + strings.TrimPrefix(refusing.URL, "http://"), "asked for the client to provide credentials"}},
	} {
		t.Run(name, func(t *testing.T) {
			namespace := core.Namespace(t)
			core.Kubeconfig(t, namespace, "c", []byte(`{"apiVersion":"v1","kind":"Config","current-context":"x",
				"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
				"clusters":[{"name":"x","cluster":{"server":"`+test.server+`"}}],
				"users":[{"name":"x","user":{"token":"very-secret"}}]}`))
			c := &clusterv1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
				Spec:       clusterv1.ClusterSpec{Paused: ptr.To(false)},
			}
			core.Create(t, c)
			eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
				got := message(c, "RemoteConnectionProbe")
				for _, want := range test.want {
					g.Expect(got).To(ContainSubstring(want))
				}
				g.Expect(got).NotTo(ContainSubstring("very-secret"))
				g.Expect(len(got)).To(BeNumerically("<", 600))
			})
		})
	}
}
