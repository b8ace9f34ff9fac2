package simulator_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/test/clouds/simulator"
)

// api is an API with one call, Greet, which counts its effects.
type api struct {
	*WithT
	ctx     context.Context
	clock   *clocktesting.FakeClock
	front   *simulator.Front
	sim     *simulator.Client
	url     string
	effects atomic.Int64
}

func newAPI(t *testing.T) *api {
	t.Helper()
	a := &api{WithT: NewWithT(t), ctx: t.Context(), clock: clocktesting.NewFakeClock(time.Unix(0, 0))}
	a.front = simulator.NewFront(a.clock, 0)
	control := simulator.NewControl(a.front)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, simulator.ControlPrefix) {
			control.ServeHTTP(w, r)
			return
		}
		name := r.URL.Query().Get("name")
		a.front.Serve(w, r, simulator.Call{Action: "Greet"}, map[string]string{"name": name}, func(e *simulator.Exchange) simulator.Answer {
			return a.greet(e, name)
		})
	}))
	t.Cleanup(server.Close)
	t.Cleanup(a.front.Close)
	a.url, a.sim = server.URL, simulator.NewClient(server.URL)
	return a
}

func (a *api) greet(e *simulator.Exchange, name string) simulator.Answer {
	e.SetCaller("a-user")
	if failure := e.Error(); failure != nil {
		return simulator.Answer{Status: failure.Status, Code: failure.Code, Write: func(w http.ResponseWriter) { w.WriteHeader(failure.Status) }}
	}
	a.effects.Add(1)
	e.AddResources(name, name)
	return simulator.Answer{Status: http.StatusOK, Write: func(w http.ResponseWriter) { _, _ = w.Write([]byte("hello " + name)) }}
}

func (a *api) fault(f simulator.Fault) string {
	id, err := a.sim.AddFault(a.ctx, f)
	a.Expect(err).NotTo(HaveOccurred())
	return id
}

// call returns status, Retry-After and body; the error is the transport's.
func (a *api) call(ctx context.Context, name string) (int, string, string, error) {
	// Go's client repeats requests that it considers idempotent.
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, a.url+"/?name="+name, nil)
	a.Expect(err).NotTo(HaveOccurred())
	response, err := new(http.Client).Do(request)
	if err != nil {
		return 0, "", "", err
	}
	defer func() { _ = response.Body.Close() }()
	body, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header.Get("Retry-After"), string(body), err
}

func TestFaultsApplyInTheirOrderToTheCallsThatTheyMatch(t *testing.T) {
	a := newAPI(t)
	id := a.fault(simulator.Fault{
		Action: "Greet", Parameters: map[string]string{"name": "a*"}, Skip: 1, Count: 1,
		Error: &simulator.APIError{Code: "Busy", Status: http.StatusTooManyRequests, RetryAfter: 17 * time.Second},
	})
	a.fault(simulator.Fault{Action: "Other", Error: &simulator.APIError{Code: "Other", Status: http.StatusTeapot}})
	for _, name := range []string{"anna", "berta"} {
		_, _, body, err := a.call(a.ctx, name)
		a.Expect(err).NotTo(HaveOccurred())
		a.Expect(body).To(Equal("hello " + name))
	}
	status, after, _, err := a.call(a.ctx, "anna")
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(status).To(Equal(http.StatusTooManyRequests))
	a.Expect(after).To(Equal("17"))
	_, _, _, err = a.call(a.ctx, "anna")
	a.Expect(err).NotTo(HaveOccurred(), "used up")
	a.Expect(a.effects.Load()).To(Equal(int64(3)))

	calls, err := a.sim.Calls(a.ctx, "Greet")
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(calls).To(HaveLen(4))
	a.Expect(calls[2]).To(Equal(simulator.Call{
		ID: 3, Time: a.clock.Now().UTC(), Action: "Greet", Caller: "a-user", Done: true, Status: 429, Code: "Busy", FaultID: id,
	}))
	a.Expect(calls[3].Resources).To(ConsistOf("anna"))
	a.Expect(a.sim.ClearCalls(a.ctx)).To(Succeed())
	a.Expect(a.sim.Calls(a.ctx)).To(BeEmpty())
}

func TestALostAnswerHasItsEffect(t *testing.T) {
	for cut, effects := range map[simulator.Cut]int64{simulator.CutBefore: 0, simulator.CutAfter: 1} {
		a := newAPI(t)
		a.fault(simulator.Fault{Action: "*", Cut: cut})
		_, _, _, err := a.call(a.ctx, "anna")
		a.Expect(err).To(HaveOccurred())
		a.Expect(a.effects.Load()).To(Equal(effects), string(cut))
		a.Expect(a.front.Calls()[0].Code).To(Equal(simulator.CodeConnectionCut))
	}
}

func TestHeldCalls(t *testing.T) {
	for name, f := range map[string]simulator.Fault{
		"before": {Action: "*", HoldBefore: true}, "after": {Action: "*", HoldAfter: true}, "in the body": {Action: "*", HoldBody: true},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAPI(t)
			id := a.fault(f)
			answered := make(chan string, 1)
			go func() {
				_, _, body, _ := a.call(a.ctx, "anna")
				answered <- body
			}()
			a.Eventually(func() (int, error) { f, err := a.sim.Fault(a.ctx, id); return f.Holding, err }).Should(Equal(1))
			a.Expect(answered).To(BeEmpty())
			a.Expect(a.sim.ReleaseFault(a.ctx, id)).To(Succeed())
			a.Eventually(answered).Should(Receive(Equal("hello anna")))

			// A caller that goes ends its own call only.
			gone, leave := context.WithCancel(a.ctx)
			left := make(chan error, 1)
			go func() {
				_, _, _, err := a.call(gone, "berta")
				left <- err
			}()
			a.Eventually(func() (int, error) { f, err := a.sim.Fault(a.ctx, id); return f.Holding, err }).Should(Equal(1))
			leave()
			a.Eventually(left).Should(Receive(HaveOccurred()))
			a.Eventually(func() string { return a.front.Calls()[1].Code }).Should(Equal(simulator.CodeConnectionCut))
			a.Expect(a.sim.ClearFaults(a.ctx)).To(Succeed())
			_, _, body, err := a.call(a.ctx, "clara")
			a.Expect(err).NotTo(HaveOccurred())
			a.Expect(body).To(Equal("hello clara"))
		})
	}
}

func TestDelaysAreOfTheClock(t *testing.T) {
	a := newAPI(t)
	a.fault(simulator.Fault{Action: "Greet", DelayAfter: time.Minute})
	answered := make(chan string, 1)
	go func() {
		_, _, body, _ := a.call(a.ctx, "anna")
		answered <- body
	}()
	a.Eventually(a.clock.HasWaiters).Should(BeTrue())
	a.Expect(answered).To(BeEmpty())
	a.clock.Step(time.Minute)
	a.Eventually(answered).Should(Receive(Equal("hello anna")))
}

func TestUnknownSettingsOfFaultsAreRefused(t *testing.T) {
	a := newAPI(t)
	a.Expect(a.sim.Do(a.ctx, http.MethodPost, "faults", map[string]any{"action": "Greet", "eror": 1}, nil)).
		To(MatchError(ContainSubstring("eror")))
}

func TestBuckets(t *testing.T) {
	g := NewWithT(t)
	c := clocktesting.NewFakeClock(time.Unix(0, 0))
	b := simulator.NewBuckets(map[string]simulator.Throttle{"writes": {Burst: 2, RefillPerSecond: 0.5}}, c)
	for range 2 {
		g.Expect(b.Take("writes")).To(BeTrue())
	}
	g.Expect(b.Take("writes")).To(BeFalse())
	g.Expect(b.Take("reads")).To(BeTrue(), "not limited")
	c.Step(2 * time.Second)
	g.Expect(b.Take("writes")).To(BeTrue())
	g.Expect(b.Take("writes")).To(BeFalse())
}
