package remote

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
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	clocktesting "k8s.io/utils/clock/testing"
)

// TestRequestsHaveALimit: each live request ends by itself, names who asks, and does not come faster than may be; probes do not wait behind
// them, nor do watches, which are few and have no limit but that of their cache.
func TestRequestsHaveALimit(t *testing.T) {
	g := NewWithT(t)
	var agent atomic.Value
	var hangs atomic.Bool
	over := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		agent.Store(r.UserAgent())
		if hangs.Load() && r.URL.Path != "/version" {
			<-over
		}
	}))
	t.Cleanup(server.Close)
	t.Cleanup(func() { close(over) })
	const burst = 2
	connection, err := newConnection(theCluster, kubeconfig{config: &rest.Config{Host: server.URL}}, Options{
		Scheme: clientgoscheme.Scheme, UserAgent: "example", QPS: 1e-6, Burst: burst, RequestTimeout: 50 * time.Millisecond,
	}.withDefaults())
	g.Expect(err).NotTo(HaveOccurred())
	remove := func(ctx context.Context) error {
		return connection.Client().Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	}
	g.Expect(remove(t.Context())).To(Succeed())
	g.Expect(agent.Load()).To(Equal("example"))
	hangs.Store(true)
	g.Expect(remove(t.Context())).To(MatchError(ContainSubstring("exceeded")))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	g.Expect(remove(ctx)).To(MatchError(ContainSubstring("rate limiter")))
	for range 2 * burst {
		g.Expect(connection.answer(ctx, time.Minute)).To(Succeed())
	}

	watching := connection.WatchConfig()
	g.Expect(watching.QPS).To(BeNumerically("<", 0))
	g.Expect(watching.Timeout).To(BeZero())
	g.Expect(watching.ContentType).To(Equal(runtime.ContentTypeProtobuf))
	g.Expect(watching.AcceptContentTypes).To(Equal(runtime.ContentTypeProtobuf+","+runtime.ContentTypeJSON), "a server may speak JSON only")
	g.Expect(connection.Config.QPS).To(BeNumerically(">", 0), "the config of a connection stays as it is")
}

// TestOptionsThatAreSet are not replaced by defaults.
func TestOptionsThatAreSet(t *testing.T) {
	g := NewWithT(t)
	now := clocktesting.NewFakeClock(time.Unix(1000, 0))
	set := Options{
		Clock: now, RequestTimeout: 1, ProbeInterval: 2, ProbeTimeout: 3, ProbeFailures: 4, SyncTimeout: 5, MinRetry: 6, MaxRetry: 7,
		Probe: Resource{Path: "/p", Name: "Pods"}, Scheme: runtime.NewScheme(),
	}
	got := set.withDefaults()
	got.mapper = nil
	g.Expect(got).To(Equal(set))
}

// TestTheClusterOfTheProcess is what InCluster leads to, and no file of that name.
func TestTheClusterOfTheProcess(t *testing.T) {
	t.Setenv("KUBERNETES_SERVICE_HOST", "")
	_, _, err := Endpoint(InCluster)
	NewWithT(t).Expect(err).To(MatchError(rest.ErrNotInCluster))
}

// TestARetryAfterALoss: the delay between attempts begins again with each connection.
func TestARetryAfterALoss(t *testing.T) {
	g := NewWithT(t)
	server, clock := newTarget(t), clocktesting.NewFakeClock(time.Now())
	server.down.Store(true)
	kubeconfigs, delays := newSecrets(server.URL), make(chan time.Duration, 100)
	connections := New(Options{
		Secrets: kubeconfigs, Scheme: clientgoscheme.Scheme, QPS: -1, Clock: clock, MinRetry: time.Minute, MaxRetry: time.Hour,
		ProbeInterval: time.Second, ProbeFailures: 1, onPause: func(end time.Time) { delays <- end.Sub(clock.Now()) },
	})
	t.Cleanup(connections.Close)
	connections.Ensure(t.Context(), theCluster)
	var delay time.Duration
	pause := func() {
		g.Eventually(delays).Should(Receive(&delay))
		g.Eventually(clock.HasWaiters).Should(BeTrue())
	}
	pause()
	for range 3 {
		clock.Step(delay)
		pause()
	}
	g.Expect(delay).To(BeNumerically(">=", 8*time.Minute))
	server.down.Store(false)
	clock.Step(delay)
	connected(g, connections, theCluster)
	pause()
	server.down.Store(true)
	clock.Step(delay)
	pause()
	g.Expect(delay).To(BeNumerically("<", 2*time.Minute))
}

// TestProbesThatAreRefused: the connection is kept, since who answers may be away briefly. The kubeconfig is read again, once for each,
// and they are repeated soon, so that it is lost before as many intervals have passed.
func TestProbesThatAreRefused(t *testing.T) {
	g := NewWithT(t)
	var refuses atomic.Bool
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if refuses.Load() {
			w.WriteHeader(http.StatusUnauthorized)
		}
	}))
	t.Cleanup(server.Close)
	kubeconfigs, clock, pauses := newSecrets(server.URL), clocktesting.NewFakeClock(time.Now()), make(chan time.Duration, 100)
	const interval, failures = 10 * time.Second, 5
	connections := New(Options{
		Secrets: kubeconfigs, Scheme: clientgoscheme.Scheme, QPS: -1, Clock: clock, ProbeInterval: interval, ProbeFailures: failures,
		MinRetry: 4 * time.Second, MaxRetry: time.Hour, onPause: func(end time.Time) { pauses <- end.Sub(clock.Now()) },
	})
	t.Cleanup(connections.Close)
	connections.Ensure(t.Context(), theCluster)
	var pause time.Duration
	// waits steps over pauses of no time, and returns how many those were.
	waits := func() (none int) {
		for g.Eventually(pauses).Should(Receive(&pause)); pause == 0; none++ {
			clock.Step(0)
			g.Eventually(pauses).Should(Receive(&pause))
		}
		return none
	}
	waits()
	connected(g, connections, theCluster)
	g.Expect(pause).To(Equal(interval))
	refuses.Store(true)
	for n := range failures - 1 {
		reads := kubeconfigs.reads.Load()
		clock.Step(pause)
		g.Expect(waits()).To(Equal(1), "it looks at the kubeconfig at once")
		g.Expect(kubeconfigs.reads.Load()).To(Equal(reads + 1))
		g.Expect(pause).To(BeNumerically("<=", interval))
		if n == 0 {
			g.Expect(pause).To(BeNumerically("~", 4*time.Second, time.Second/2))
		}
		_, err := connections.Get(theCluster)
		g.Expect(err).NotTo(HaveOccurred())
	}
	clock.Step(pause)
	g.Eventually(func() string { return failure(g, connections).Reason }).Should(Equal(Unauthorized))
}
