package rewatch_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/rewatch"
)

// TestAServerThatHangsHoldsNoWatchForEver: a watch that is silent beyond the time that was asked for is ended on this side,
// and so is a list that does not come to its end, which is then tried again.
func TestAServerThatHangsHoldsNoWatchForEver(t *testing.T) {
	g := NewWithT(t)
	defer rewatch.Limits(100*time.Millisecond, time.Minute, 100*time.Millisecond)()
	var lists atomic.Int32
	ended := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("watch") == "" && lists.Add(1) > 1 {
			_, _ = w.Write([]byte(`{"kind":"NodeList","apiVersion":"v1","metadata":{"resourceVersion":"1"},"items":[]}`))
			return
		}
		_, _ = w.Write([]byte(`{"kind":`))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-r.Context().Done():
		case <-ended:
		}
	}))
	defer server.Close()
	defer close(ended)
	retrying := nodesOf(g, server)
	const guard = 30 * time.Second
	ctx, cancel := context.WithTimeout(t.Context(), guard)
	defer cancel()
	_, err := retrying.ListWithContext(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred(), "the second attempt")
	watch, err := retrying.WatchWithContext(t.Context(), metav1.ListOptions{TimeoutSeconds: ptr.To[int64](0)})
	g.Expect(err).NotTo(HaveOccurred())
	defer watch.Stop()
	g.Eventually(watch.ResultChan()).WithTimeout(guard).Should(BeClosed())
}

// TestAWatchThatIsNotAnswered is tried again, however long it was to last: the answer comes before the first event.
func TestAWatchThatIsNotAnswered(t *testing.T) {
	g := NewWithT(t)
	defer rewatch.Limits(time.Minute, 100*time.Millisecond, time.Minute)()
	var watches atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if watches.Add(1) > 1 {
			w.Header().Set("Content-Type", "application/json")
			_ = http.NewResponseController(w).Flush()
		}
		<-r.Context().Done()
	}))
	defer server.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	watch, err := nodesOf(g, server).WatchWithContext(ctx, metav1.ListOptions{})
	g.Expect(err).NotTo(HaveOccurred())
	defer watch.Stop()
	g.Expect(watches.Load()).To(BeEquivalentTo(2))
	g.Consistently(watch.ResultChan(), 300*time.Millisecond).ShouldNot(BeClosed(), "the limit is that of the answer alone")
}

// nodesOf lists and watches the Nodes of a server.
func nodesOf(g *WithT, server *httptest.Server) cache.ListerWatcherWithContext {
	getter, err := rest.RESTClientFor(&rest.Config{Host: server.URL, APIPath: "/api", ContentConfig: rest.ContentConfig{
		GroupVersion: &corev1.SchemeGroupVersion, NegotiatedSerializer: clientgoscheme.Codecs.WithoutConversion(),
	}})
	g.Expect(err).NotTo(HaveOccurred())
	return cache.ToListerWatcherWithContext(rewatch.Retrying(cache.NewListWatchFromClient(getter, "nodes", "", fields.Everything())))
}
