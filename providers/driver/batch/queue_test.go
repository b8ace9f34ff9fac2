package batch

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/providers/driver"
)

// The tests of this file do not start the Batcher: they make its calls one by one.

// flush makes the next call in a scope.
func (r *rig) flush(scope driver.Scope) { r.batcher.flush(r.t.Context(), r.batcher.queues[scope]) }

// woken returns who has been woken, sorted.
func (r *rig) woken() []string {
	var names []string
	for r.queue.Len() > 0 {
		request, _ := r.queue.Get()
		r.queue.Done(request)
		names = append(names, request.Name)
	}
	slices.Sort(names)
	return names
}

// answered returns whether there is an answer for a machine, and takes it.
func (r *rig) answered(scope, name string) bool {
	_, ok := r.batcher.Take(key(name), handle(scope, name))
	return ok
}

// waits returns how long a scope waits from now on because of throttling.
func (r *rig) waits(scope driver.Scope) time.Duration {
	return r.batcher.queues[scope].until.Sub(r.clock.Now())
}

var tooMany = driver.NewThrottleError("Call", "", 0, errors.New("too many"))

func throttle(driver.Handle) driver.Answer[string] { return driver.Answer[string]{Err: tooMany} }

func TestDefaultsReplaceZeroValuesOnly(t *testing.T) {
	g := NewWithT(t)
	complete := func(o Options) Options {
		o = o.WithDefaults()
		g.Expect(o.Random).NotTo(BeNil())
		o.Random = nil // Functions cannot be compared.
		return o
	}
	g.Expect(complete(Options{})).To(Equal(DefaultOptions()))
	for _, set := range []Options{
		{Clock: clocktesting.NewFakeClock(time.Unix(1, 0)), Gather: time.Hour, Interval: time.Minute, Linger: time.Hour, Size: 7},
		{Clock: clocktesting.NewFakeClock(time.Unix(2, 0)), Gather: -1, Interval: -1, Linger: -1, Size: 1},
	} {
		g.Expect(complete(set)).To(Equal(set))
	}
}

func TestWhenACallIsDue(t *testing.T) {
	asked := time.Unix(1000, 0)
	opts := Options{Gather: 100 * time.Millisecond, Interval: time.Second, Linger: 4 * time.Second, Size: 3}
	for name, c := range map[string]struct {
		waiting       int
		called, until time.Time
		want          time.Duration // after the request
	}{
		"the first waits for others":            {waiting: 1, want: 100 * time.Millisecond},
		"one is missing":                        {waiting: 2, want: 100 * time.Millisecond},
		"a full batch does not wait":            {waiting: 3},
		"more than a batch does not wait":       {waiting: 4},
		"a call was made a moment ago":          {waiting: 1, called: asked.Add(-200 * time.Millisecond), want: 3800 * time.Millisecond},
		"so it was, and the batch is full":      {waiting: 3, called: asked.Add(-200 * time.Millisecond), want: 800 * time.Millisecond},
		"a call was made long ago":              {waiting: 1, called: asked.Add(-time.Hour), want: 100 * time.Millisecond},
		"the time to linger is over":            {waiting: 2, called: asked.Add(-4 * time.Second), want: 100 * time.Millisecond},
		"calls are throttled":                   {waiting: 3, called: asked, until: asked.Add(time.Minute), want: time.Minute},
		"calls were throttled for less than 1s": {waiting: 3, called: asked, until: asked.Add(time.Millisecond), want: time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			q := &queue[string]{called: c.called, until: c.until}
			for range c.waiting {
				q.waiting = append(q.waiting, &request[string]{since: asked})
			}
			NewWithT(t).Expect(q.due(opts)).To(BeTemporally("==", asked.Add(c.want)))
		})
	}
}

// Nothing keeps a machine from having two instances, and they need not be in one scope.
func TestAMachineMayAskAboutSeveral(t *testing.T) {
	r := newRig(t)
	first, second := handle("r", "i-1"), handle("r", "i-2")
	began := r.clock.Now()
	r.Expect(r.batcher.Ask(key("m"), first)).To(Equal(Pending{Since: began}))
	r.clock.Step(time.Minute)
	r.Expect(r.batcher.Ask(key("m"), second)).To(Equal(Pending{Since: began.Add(time.Minute)}))
	r.Expect(r.batcher.Ask(key("m"), first)).To(Equal(Pending{Since: began}), "it waits since the first time")
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.called()).To(Equal([]string{"r: i-1 i-2"}))
	for _, h := range []driver.Handle{first, second} {
		answer, ok := r.batcher.Take(key("m"), h)
		r.Expect(ok).To(BeTrue())
		r.Expect(answer.Value).To(Equal("of " + h.ProviderID))
	}
	r.Expect(r.batcher.requests).To(BeEmpty())

	r.batcher.Ask(key("m"), first)
	r.batcher.Ask(key("m"), handle("s", "i-2"))
	r.batcher.Forget(key("m"))
	r.Expect(r.batcher.requests).To(BeEmpty())
	r.flush(driver.Scope{Location: "r"})
	r.flush(driver.Scope{Location: "s"})
	r.Expect(r.called()).To(HaveLen(1), "both are withdrawn, and nothing is no call")
}

func TestNothingWorksOnAnEmptyQueue(t *testing.T) {
	r := newRig(t)
	r.ask("r", "a")
	r.batcher.Forget(key("a"))
	r.batcher.mu.Lock()
	defer r.batcher.mu.Unlock()
	r.batcher.ctx = t.Context()
	r.batcher.drain(r.batcher.queues[driver.Scope{Location: "r"}])
	r.Expect(r.batcher.queues[driver.Scope{Location: "r"}].running).To(BeFalse())
}

// What the driver gives no answer about may have taken effect or not.
func TestTooFewAnswers(t *testing.T) {
	r := newRig(t)
	r.batcher.call = func(context.Context, driver.Scope, []driver.Handle) []driver.Answer[string] {
		return []driver.Answer[string]{{Value: "good"}}
	}
	r.ask("r", "a", "b", "c")
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.woken()).To(Equal([]string{"a", "b", "c"}))
	answer := r.take("r", "a")
	r.Expect(answer.Value).To(Equal("good"))
	r.Expect(answer.Err).NotTo(HaveOccurred())
	for _, name := range []string{"b", "c"} {
		err := r.take("r", name).Err
		r.Expect(err).To(MatchError("test: the driver gave no answer"))
		r.Expect(driver.ClassOf(err)).To(Equal(driver.ClassUnknown))
	}
}

// A machine that has withdrawn its request while the call is under way is neither woken nor asked about again.
func TestARequestThatIsWithdrawnDuringItsCall(t *testing.T) {
	for name, c := range map[string]struct {
		answer driver.Answer[string]
		calls  []string
	}{
		"answered":  {driver.Answer[string]{Value: "good"}, []string{"r: a b"}},
		"throttled": {driver.Answer[string]{Err: tooMany}, []string{"r: a b", "r: b"}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.answers(func(h driver.Handle) driver.Answer[string] {
				if h.ProviderID == "a" {
					r.batcher.Forget(key("a"))
				}
				return c.answer
			})
			r.ask("r", "a", "b")
			r.flush(driver.Scope{Location: "r"})
			r.Expect(r.woken()).To(Equal([]string{"b"}))
			r.Expect(r.answered("r", "a")).To(BeFalse())
			r.answers(nil)
			r.flush(driver.Scope{Location: "r"})
			r.Expect(r.answered("r", "b")).To(BeTrue())
			r.Expect(r.called()).To(Equal(c.calls))
		})
	}
}

// An answer that comes as the process exits is about that, and not about the instance.
func TestAnAnswerAtTheEndOfTheProcess(t *testing.T) {
	r := newRig(t)
	ctx, cancel := context.WithCancel(t.Context())
	r.answers(func(driver.Handle) driver.Answer[string] {
		cancel()
		return driver.Answer[string]{Err: ctx.Err()}
	})
	r.ask("r", "a")
	r.batcher.flush(ctx, r.batcher.queues[driver.Scope{Location: "r"}])
	r.Expect(r.called()).To(HaveLen(1))
	r.Expect(r.woken()).To(BeEmpty())
	r.Expect(r.answered("r", "a")).To(BeFalse())
}

// All that wait have to report that they are throttled, once: those of the call and those that came after.
func TestWhoIsWokenWhenThrottlingBegins(t *testing.T) {
	r := newRig(t)
	r.ask("r", "a", "b", "c", "d")
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.woken()).To(Equal([]string{"a", "b", "c"}), "nothing is new for d")

	r.answers(throttle)
	r.ask("r", "e", "f", "g")
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.called()).To(Equal([]string{"r: a b c", "r: d e f"}))
	r.Expect(r.woken()).To(Equal([]string{"d", "e", "f", "g"}))
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.called()[2]).To(Equal("r: d e f"), "they are asked about first")
	r.Expect(r.woken()).To(BeEmpty(), "they have reported it")

	r.answers(nil)
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.woken()).To(Equal([]string{"d", "e", "f"}), "the throttling has ended, and g still waits")
	r.Expect(r.batcher.Ask(key("g"), handle("r", "g")).Throttled).NotTo(HaveOccurred())
	r.answers(throttle)
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.woken()).To(Equal([]string{"g"}), "it begins again")
}

// The wait is that of Backoff and up to a fifth more, so that the scopes of many installations do not call in step.
func TestTheWaitAfterThrottling(t *testing.T) {
	r := newRig(t)
	r.answers(throttle)
	r.ask("r", "a")
	waits := map[time.Duration]bool{}
	for range 100 {
		r.batcher.queues[driver.Scope{Location: "r"}].refusals = 0
		r.flush(driver.Scope{Location: "r"})
		r.Expect(r.waits(driver.Scope{Location: "r"})).To(And(BeNumerically(">=", time.Minute), BeNumerically("<", 72*time.Second)))
		waits[r.waits(driver.Scope{Location: "r"})] = true
	}
	r.Expect(len(waits)).To(BeNumerically(">", 50), "it varies")
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.waits(driver.Scope{Location: "r"})).
		To(And(BeNumerically(">=", 2*time.Minute), BeNumerically("<", 144*time.Second)), "the second in a row")

	r.answers(nil)
	r.flush(driver.Scope{Location: "r"})
	r.answers(throttle)
	r.ask("r", "a", "b")
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.waits(driver.Scope{Location: "r"})).
		To(And(BeNumerically(">=", time.Minute), BeNumerically("<", 72*time.Second)), "the first again")
}

func TestTheLongerOfBackoffAndTheCloudsDelayCounts(t *testing.T) {
	r := newRig(t)
	r.ask("r", "a")
	for after, want := range map[time.Duration]time.Duration{time.Hour: time.Hour, time.Second: time.Minute} {
		r.batcher.queues[driver.Scope{Location: "r"}].refusals = 0
		r.answers(func(driver.Handle) driver.Answer[string] {
			return driver.Answer[string]{Err: driver.NewThrottleError("Call", "", after, errors.New("too many"))}
		})
		r.flush(driver.Scope{Location: "r"})
		r.Expect(r.waits(driver.Scope{Location: "r"}).Truncate(time.Minute)).To(Equal(want))
	}
	r.batcher.opts.Backoff = func(int) time.Duration { return 0 }
	r.answers(throttle)
	r.flush(driver.Scope{Location: "r"})
	r.Expect(r.waits(driver.Scope{Location: "r"})).To(BeZero(), "no wait has no fifth")
}
