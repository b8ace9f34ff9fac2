package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
)

// reads is an Attachment that reads what it must by its own server alone.
type reads struct {
	from  string
	valid *atomic.Pointer[string]
}

func (r reads) Check(context.Context) error { return nil }
func (r reads) Run(ctx context.Context)     { <-ctx.Done() }
func (r reads) HasSynced() bool             { return *r.valid.Load() == r.from }

// TestAKubeconfigThatIsRotatedWhileItIsRead: the old one was checked, and is taken back before anything was read by it. The new one is used at
// once, and not once the time to read is over.
func TestAKubeconfigThatIsRotatedWhileItIsRead(t *testing.T) {
	g := NewWithT(t)
	server := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(s.Close)
		return s.URL
	}
	old, rotated := server(), server()
	file := filepath.Join(t.TempDir(), "kubeconfig")
	give := func(url string) {
		g.Expect(os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
			"contexts":[{"name":"x","context":{"cluster":"x"}}],"clusters":[{"name":"x","cluster":{"server":%q}}]}`, url), 0o600)).To(Succeed())
	}
	give(old)
	valid, attached := &atomic.Pointer[string]{}, &atomic.Int32{}
	valid.Store(ptr.To(strings.TrimPrefix(rotated, "http://")))
	connections := New(Options{
		Kubeconfig: file, Scheme: clientgoscheme.Scheme, QPS: -1, MinRetry: time.Millisecond, SyncTimeout: time.Hour, ProbeInterval: time.Hour,
		Attach: func(c *Connection) (Attachment, error) { attached.Add(1); return reads{c.Server(), valid}, nil },
	})
	t.Cleanup(connections.Close)
	key := types.NamespacedName{Namespace: "default", Name: "c"}
	connections.Ensure(t.Context(), key)
	g.Eventually(attached.Load).Should(BeEquivalentTo(1))
	give(rotated)
	g.Eventually(func() error {
		connections.Ensure(t.Context(), key) // As the event of the Secret does.
		_, err := connections.Get(key)
		return err
	}).Should(Succeed())
	g.Expect(attached.Load()).To(BeEquivalentTo(2))
}
