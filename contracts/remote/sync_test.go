package remote

import (
	"context"
	"encoding/json"
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
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// reads is an Attachment that reads what it must by its own server alone.
type reads struct {
	from  string
	valid *atomic.Pointer[string]
}

func (r reads) Check(context.Context) error { return nil }
func (r reads) Run(ctx context.Context)     { <-ctx.Done() }
func (r reads) HasSynced() bool             { return *r.valid.Load() == r.from }

// TestAKubeconfigThatIsRotatedWhileItIsRead: the old one was checked, and is taken back before anything was read by it. The new one is used
// at once, and not once the time to read is over.
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

// hangingSecrets has one kubeconfig for all Clusters; while hangs is set, no read is answered before its context ends.
type hangingSecrets struct {
	client.Reader
	content atomic.Pointer[string]
	hangs   atomic.Bool
	// waiting counts the reads that are not answered, begun those that were begun.
	waiting, begun atomic.Int32
}

func (h *hangingSecrets) Get(ctx context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	h.begun.Add(1)
	if h.hangs.Load() {
		h.waiting.Add(1)
		<-ctx.Done()
		h.waiting.Add(-1)
		return ctx.Err()
	}
	*into.(*corev1.Secret) = corev1.Secret{
		ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}, Data: map[string][]byte{SecretKey: []byte(*h.content.Load())},
	}
	return nil
}

// use has them lead to a server.
func (h *hangingSecrets) use(server string) {
	content, _ := json.Marshal(server)
	h.content.Store(ptr.To(fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x"}}],"clusters":[{"name":"x","cluster":{"server":%s}}]}`, content)))
}

// TestAKubeconfigThatIsNotAnsweredWhileItIsRead: the management API server hangs on the kubeconfig while a connection reads for the first
// time. It is used as soon as it has read all, and a change that was to be read meanwhile is read after that.
func TestAKubeconfigThatIsNotAnsweredWhileItIsRead(t *testing.T) {
	g := NewWithT(t)
	server := func() string {
		s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}))
		t.Cleanup(s.Close)
		return s.URL
	}
	first, second := server(), server()
	secrets, valid, attached := &hangingSecrets{}, &atomic.Pointer[string]{}, &atomic.Int32{}
	secrets.use(first)
	valid.Store(ptr.To(""))
	connections := New(Options{
		Secrets: secrets, Scheme: clientgoscheme.Scheme, QPS: -1, MinRetry: time.Millisecond, SyncTimeout: time.Hour, ProbeInterval: time.Hour,
		RequestTimeout: time.Hour,
		Attach:         func(c *Connection) (Attachment, error) { attached.Add(1); return reads{c.Server(), valid}, nil },
	})
	t.Cleanup(connections.Close)
	key := types.NamespacedName{Namespace: "default", Name: "c"}
	connections.Ensure(t.Context(), key)
	g.Eventually(attached.Load).Should(BeEquivalentTo(1))

	secrets.use(second)
	secrets.hangs.Store(true)
	connections.Ensure(t.Context(), key) // As the event of the Secret does.
	g.Eventually(secrets.waiting.Load).Should(BeEquivalentTo(1))
	begun := secrets.begun.Load()
	valid.Store(ptr.To(strings.TrimPrefix(first, "http://")))
	g.Eventually(func() error { _, err := connections.Get(key); return err }).Should(Succeed())
	g.Eventually(secrets.begun.Load).Should(BeNumerically(">", begun), "the change is not forgotten")
}

// TestAKubeconfigThatIsNotAnswered: the management API server hangs on the kubeconfig. A connection that there is continues to be probed,
// and where there is none the reason is reported.
func TestAKubeconfigThatIsNotAnswered(t *testing.T) {
	g := NewWithT(t)
	var down atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	secrets := &hangingSecrets{}
	secrets.use(server.URL)
	connections := New(Options{
		Secrets: secrets, Scheme: clientgoscheme.Scheme, QPS: -1, MinRetry: time.Millisecond, RequestTimeout: 50 * time.Millisecond,
		ProbeInterval: 20 * time.Millisecond, ProbeFailures: 1 << 30,
	})
	t.Cleanup(connections.Close)
	key, other := types.NamespacedName{Namespace: "default", Name: "c"}, types.NamespacedName{Namespace: "default", Name: "d"}
	connections.Ensure(t.Context(), key)
	g.Eventually(func() error { _, err := connections.Get(key); return err }).Should(Succeed())

	secrets.hangs.Store(true)
	connections.Ensure(t.Context(), key)
	g.Eventually(secrets.waiting.Load).Should(BeEquivalentTo(1))
	down.Store(true)
	g.Eventually(func() time.Time { since, _ := connections.Unanswered(key); return since }).ShouldNot(BeZero())
	connections.Ensure(t.Context(), other)
	g.Eventually(func() error { _, err := connections.Get(other); return err }).
		Should(MatchError(ContainSubstring("Secret d-kubeconfig could not be read")))
}
