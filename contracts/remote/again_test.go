package remote

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	clocktesting "k8s.io/utils/clock/testing"
)

// probed is a connection to an API server whose time only the test moves.
type probed struct {
	*WithT
	*Connections
	clock *clocktesting.FakeClock
	key   types.NamespacedName
	// down has the server answer probes with 503 and nothing else, broken nothing but probes, held not until it is closed; probes counts
	// what it was asked.
	down   atomic.Bool
	broken atomic.Bool
	held   atomic.Pointer[chan struct{}]
	probes atomic.Int32
	// paused has each pause of the goroutine that probes, by when it ends.
	paused chan time.Time
	ends   time.Time
}

func newProbed(t *testing.T) *probed {
	t.Helper()
	p := &probed{
		WithT:  NewWithT(t),
		clock:  clocktesting.NewFakeClock(time.Now()),
		key:    types.NamespacedName{Namespace: "default", Name: "c"},
		paused: make(chan time.Time, 1000),
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/version" {
			// A request that is no probe: the connection breaks.
			if p.down.Load() || p.broken.Load() {
				panic(http.ErrAbortHandler)
			}
			return
		}
		p.probes.Add(1)
		if held := p.held.Load(); held != nil {
			select {
			case <-*held:
			case <-r.Context().Done():
			}
		}
		if p.down.Load() {
			w.WriteHeader(http.StatusServiceUnavailable)
		}
	}))
	t.Cleanup(server.Close)
	file := filepath.Join(t.TempDir(), "kubeconfig")
	p.Expect(os.WriteFile(file, fmt.Appendf(nil, `{"apiVersion":"v1","kind":"Config","current-context":"x",
		"contexts":[{"name":"x","context":{"cluster":"x"}}],
		"clusters":[{"name":"x","cluster":{"server":%q}}]}`, server.URL), 0o600)).To(Succeed())
	p.Connections = New(Options{
		Kubeconfig: file, Scheme: clientgoscheme.Scheme, QPS: -1, Clock: p.clock, RequestTimeout: time.Minute, ProbeTimeout: time.Minute,
		onPause: func(end time.Time) { p.paused <- end },
	})
	t.Cleanup(p.Close)
	p.Ensure(t.Context(), p.key)
	p.Eventually(func() error { _, err := p.Get(p.key); return err }).Should(Succeed())
	p.rests()
	p.probes.Store(0)
	return p
}

// rests waits until nothing happens before time passes.
func (p *probed) rests() {
	for ok := true; ok; ok = !p.ends.After(p.clock.Now()) {
		p.Eventually(p.paused).Should(Receive(&p.ends))
	}
	p.Eventually(p.clock.HasWaiters).Should(BeTrue())
}

// step lets time pass, and waits for what that brings.
func (p *probed) step(d time.Duration) {
	p.clock.Step(d)
	if !p.clock.Now().Before(p.ends) {
		p.rests()
	}
}

// pass lets time pass in steps, and returns after how long each probe came.
func (p *probed) pass(d, step time.Duration) (at []time.Duration) {
	for passed := step; passed <= d; passed += step {
		before := p.probes.Load()
		p.step(step)
		if p.probes.Load() > before {
			at = append(at, passed)
		}
	}
	return at
}

// answers is what unanswered returns while the API server answers.
const answers time.Duration = -1

// unanswered is for how long the API server has not answered.
func (p *probed) unanswered() time.Duration {
	since, _ := p.Unanswered(p.key)
	if since.IsZero() {
		return answers
	}
	return p.clock.Since(since)
}

// TestProbesAfterOneThatFailed: the API server is asked once in ten seconds while it answers, and again after one and two seconds when it
// does not, so that it is soon known whether that was more than a moment. A connection is lost as late as without those.
func TestProbesAfterOneThatFailed(t *testing.T) {
	p := newProbed(t)
	p.Expect(p.pass(60*time.Second, time.Second)).To(HaveLen(6), "no request more while all is well")

	p.down.Store(true)
	p.Expect(p.pass(10*time.Second, time.Second)).To(HaveLen(1))
	p.Expect(p.unanswered()).To(BeZero(), "there was no earlier request")
	p.Expect(p.pass(5*time.Second, 500*time.Millisecond)).To(HaveLen(2), "after one second, and two")
	p.Expect(p.unanswered()).To(Equal(5*time.Second), "since the first of them")
	p.down.Store(false)
	p.pass(5*time.Second, 500*time.Millisecond)
	p.Expect(p.unanswered()).To(Equal(answers))
	p.Expect(p.pass(60*time.Second, time.Second)).To(HaveLen(6), "as before")

	p.down.Store(true)
	p.pass(49*time.Second, 500*time.Millisecond)
	_, err := p.Get(p.key)
	p.Expect(err).NotTo(HaveOccurred(), "four probes of those in each interval have failed")
	p.clock.Step(time.Second)
	p.Eventually(func() error { _, err := p.Get(p.key); return err }).ShouldNot(Succeed())
}

// TestAProbeThatHangs counts as unanswered before its timeout, and as answered when it is after all.
func TestAProbeThatHangs(t *testing.T) {
	p := newProbed(t)
	held := make(chan struct{})
	p.held.Store(&held)
	p.clock.Step(10 * time.Second)
	p.Eventually(p.probes.Load).Should(BeEquivalentTo(1))
	p.Eventually(p.clock.HasWaiters).Should(BeTrue())
	p.Expect(p.unanswered()).To(Equal(answers), "it may have been sent a moment ago")
	p.clock.Step(answerTimeout)
	p.Eventually(p.unanswered).Should(Equal(answerTimeout), "it counts from the request, not from the last answer: ten seconds without a request")
	_, why := p.Unanswered(p.key)
	p.Expect(why).To(ContainSubstring("not answered"))
	p.held.Store(nil)
	close(held)
	p.Eventually(p.unanswered).Should(Equal(answers))
	p.Expect(p.probes.Load()).To(BeEquivalentTo(1))
}

// TestARequestThatFailsHasAProbeSent: what breaks between two probes is known once a request has noticed it. A caller that
// gives up proves nothing.
func TestARequestThatFailsHasAProbeSent(t *testing.T) {
	p := newProbed(t)
	p.pass(3*time.Second, time.Second)
	connection, err := p.Get(p.key)
	p.Expect(err).NotTo(HaveOccurred())
	// No read, which client-go repeats for ten seconds.
	send := func(ctx context.Context) error {
		return connection.Client().Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}})
	}
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	p.Expect(send(cancelled)).NotTo(Succeed())
	p.Expect(p.pass(time.Second, time.Second)).To(BeEmpty())

	p.down.Store(true)
	p.Expect(send(t.Context())).NotTo(Succeed())
	p.Eventually(p.unanswered).Should(BeZero())
	p.clock.Step(500 * time.Millisecond)
	p.Expect(p.unanswered()).To(Equal(500 * time.Millisecond))
	for range 10 {
		p.Expect(send(t.Context())).NotTo(Succeed())
	}
	p.Consistently(p.probes.Load).Should(BeEquivalentTo(1), "not for each of them")
	p.rests()
	p.Expect(p.pass(600*time.Millisecond, 600*time.Millisecond)).To(HaveLen(1), "the one after the first")
	p.Expect(send(t.Context())).NotTo(Succeed())
	p.rests()
	p.Expect(p.pass(1500*time.Millisecond, 500*time.Millisecond)).To(BeEmpty(), "it is known already")
	p.down.Store(false)
	p.pass(2*time.Second, 500*time.Millisecond)
	p.Expect(p.unanswered()).To(Equal(answers))

	// While it answers probes there is one a second at most.
	p.probes.Store(0)
	p.broken.Store(true)
	for range 10 {
		p.Expect(send(t.Context())).NotTo(Succeed())
	}
	p.Consistently(p.probes.Load).Should(BeNumerically("<=", 1))
}
