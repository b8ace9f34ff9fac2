package remote

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// TestUnanswered: the first probe that is not answered is reported at once, with the time when it was sent, and so is the next answer.
// The connection is kept meanwhile; once it is lost, Get says since when.
func TestUnanswered(t *testing.T) {
	g := NewWithT(t)
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	defer server.Close()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	g.Expect(os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":%q}}]}`, server.URL), 0o600)).To(Succeed())
	connections := New(Options{
		Kubeconfig: file, Scheme: clientgoscheme.Scheme, QPS: -1, ProbeInterval: 20 * time.Millisecond, ProbeFailures: 1 << 30,
	})
	defer connections.Close()
	key := types.NamespacedName{Namespace: "default", Name: "c"}
	var notified atomic.Int32
	connections.OnUnanswered(func(cluster types.NamespacedName) {
		if cluster == key {
			notified.Add(1)
		}
	})
	since, why := connections.Unanswered(key)
	g.Expect(since).To(BeZero(), "it is not known yet")
	g.Expect(why).To(BeEmpty())
	connections.Ensure(t.Context(), key)
	g.Eventually(func() error { _, err := connections.Get(key); return err }).Should(Succeed())
	answer := connections.LastSuccess(key)
	g.Eventually(func() time.Time { return connections.LastSuccess(key) }).Should(BeTemporally(">", answer), "a probe was answered")
	g.Expect(notified.Load()).To(BeZero())

	down.Store(true)
	g.Eventually(notified.Load).Should(BeEquivalentTo(1))
	since, why = connections.Unanswered(key)
	g.Expect(since).To(BeTemporally(">", connections.LastSuccess(key)), "since it was asked")
	g.Expect(why).To(ContainSubstring("503"))
	_, err := connections.Get(key)
	g.Expect(err).NotTo(HaveOccurred())

	down.Store(false)
	g.Eventually(notified.Load).Should(BeEquivalentTo(2))
	since, _ = connections.Unanswered(key)
	g.Expect(since).To(BeZero())
}
