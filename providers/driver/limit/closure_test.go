package limit

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

// left returns how long CallCreate is closed in scope r.
func (r *rig) left() time.Duration { return r.pair().left(r.fake.Now()) }

func TestWhatClosesAKind(t *testing.T) {
	cause := errors.New("x")
	for name, c := range map[string]struct {
		errs []error
		want time.Duration
	}{
		"nothing":                {nil, 0},
		"success":                {[]error{nil}, 0},
		"another class":          {[]error{driver.NewQuotaError("", "", cause)}, 0},
		"no class":               {[]error{cause}, 0},
		"throttle":               {[]error{throttle(0)}, time.Second},
		"RetryAfter":             {[]error{throttle(7 * time.Second)}, 7 * time.Second},
		"a short RetryAfter":     {[]error{throttle(time.Millisecond)}, time.Millisecond},
		"a RetryAfter of no use": {[]error{throttle(-time.Minute)}, time.Second},
		"an absurd RetryAfter":   {[]error{throttle(1000 * time.Hour)}, time.Hour},
		"the worst of many":      {[]error{nil, throttle(0), throttle(9 * time.Second), throttle(3 * time.Second), cause}, 9 * time.Second},
		"one of many":            {[]error{nil, cause, throttle(0), nil}, time.Second},
		"the Limiter's own":      {[]error{closed(create, time.Minute, throttle(time.Minute)), paced(create, time.Minute)}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t, one(1, 10))
			r.admit("a")
			r.Report("r", create, c.errs...)
			r.Expect(r.left()).To(Equal(c.want))
			r.Expect(r.admit("b")).To(Equal(c.want))
			r.Expect(r.Admit("r", read, key("b"))).To(BeZero(), "the other kinds")
			r.Expect(r.Admit("s", create, key("c"))).To(BeZero(), "the other scopes")
		})
	}
}

func TestPausesDoubleWhileThrottlesFollowEachOther(t *testing.T) {
	r := newRig(t, one(1, 1))
	for _, want := range []int{1, 2, 4, 8, 16, 32, 60, 60} {
		r.Report("r", create, throttle(0))
		r.Expect(r.left()).To(Equal(time.Duration(want) * time.Second))
		r.passes(r.left())
	}
	for name, calm := range map[string]func(){
		"a call was admitted":   func() { r.Report("r", create, nil) },
		"so it was, for others": func() { r.Report("r", create, errors.New("x"), driver.NewNotFoundError("", "", errors.New("x"))) },
		"the rate has recovered": func() {
			r.passes(recovery)
			r.pair()
		},
	} {
		r.Report("r", create, throttle(0))
		r.Expect(r.left()).To(BeNumerically(">", time.Second), "before "+name)
		r.passes(r.left())
		calm()
		r.Report("r", create, throttle(0))
		r.Expect(r.left()).To(Equal(time.Second), name)
		r.passes(r.left())
	}
	for name, err := range map[string]error{
		"the answer was lost": errors.New("timeout"),
		"nothing was called":  driver.NewRefusedError("", "", errors.New("no connection")),
		"nor here":            closed(create, time.Second, throttle(0)),
	} {
		r.Report("r", create, err)
		r.Report("r", create, throttle(0))
		r.Expect(r.left()).To(BeNumerically(">", time.Second), name)
		r.passes(r.left())
	}
}

func TestPausesAreSpreadByAFifth(t *testing.T) {
	g := NewWithT(t)
	l := New(newRig(t, nil).fake, nil)
	seen := map[time.Duration]bool{}
	for range 100 {
		d := l.spread(10 * time.Second)
		g.Expect(d).To(And(BeNumerically(">=", 10*time.Second), BeNumerically("<", 12*time.Second)))
		seen[d] = true
	}
	g.Expect(len(seen)).To(BeNumerically(">", 50))
	g.Expect(l.spread(1)).To(Equal(time.Duration(1)))
}

// Calls under way when one is throttled are throttled too: that is one event, and not many.
func TestAnswersToEarlierCallsBelongToTheSameClosure(t *testing.T) {
	r := newRig(t, one(8, 8))
	began := r.fake.Now()
	r.passes(time.Second)
	r.report("r", create, began, throttle(0))
	r.Expect(r.pair().rate()).To(Equal(4.0))
	r.report("r", create, began, throttle(0))
	r.Expect(r.left()).To(Equal(time.Second), "no more than the first")
	r.report("r", create, began, throttle(500*time.Millisecond))
	r.Expect(r.left()).To(Equal(time.Second), "it ends earlier")
	latest := throttle(10 * time.Second)
	r.report("r", create, began, latest)
	r.Expect(r.left()).To(Equal(10 * time.Second))
	r.Expect(errors.Is(r.Closed("r", create), latest)).To(BeTrue(), "its words")
	r.report("r", create, began, nil)
	b := r.pair()
	r.Expect(b.rate()).To(Equal(4.0))
	r.Expect(b.refusals).To(Equal(1), "the cloud has admitted it before it throttled")
	r.Expect(b.closures).To(Equal(1))

	r.passes(20 * time.Second)
	r.report("r", create, began, throttle(0))
	r.Expect(r.left()).To(BeZero(), "long answered")
	r.report("r", create, began, throttle(time.Second))
	r.Expect(r.left()).To(Equal(time.Second), "the cloud asks for it")
	r.Expect(r.pair().refusals).To(Equal(1))
	r.passes(time.Second)
	r.report("r", create, r.fake.Now(), throttle(0))
	r.Expect(r.left()).To(Equal(2 * time.Second))
	r.Expect(r.pair().closures).To(Equal(2))
}

func TestPaceResumesWithOneCall(t *testing.T) {
	r := newRig(t, one(2, 10))
	r.admit("before")
	r.passes(time.Minute)
	r.Report("r", create, throttle(30*time.Second))
	var waits []time.Duration
	for i := range 4 {
		waits = append(waits, r.Admit("r", create, numbered(i)).Round(10*time.Millisecond))
	}
	r.Expect(waits).To(Equal([]time.Duration{30 * time.Second, 31 * time.Second, 31990 * time.Millisecond, 32970 * time.Millisecond}),
		"half of the rate, which rises a little")
	r.passes(30*time.Second - 1)
	r.Expect(r.Admit("r", create, numbered(0))).To(Equal(time.Duration(1)))
	r.passes(1)
	for i, want := range []bool{true, false, false, false} {
		r.Expect(r.Admit("r", create, numbered(i)) == 0).To(Equal(want))
	}
}

func TestHowCallsAreRefusedWhileAKindIsClosed(t *testing.T) {
	r := newRig(t, one(1, 1))
	never := func(context.Context) error { panic("called") }
	r.Report("r", create, throttle(time.Minute))
	r.passes(20 * time.Second)
	err := r.Do(t.Context(), "r", create, never)
	var answer *driver.Error
	r.Expect(errors.As(err, &answer)).To(BeTrue())
	r.Expect(answer.Class).To(Equal(driver.ClassThrottle))
	r.Expect(answer.Operation).To(Equal("Create"))
	r.Expect(answer.RetryAfter).To(Equal(40 * time.Second))
	r.Expect(err).To(MatchError(
		"Create: calls are paused on this side, since the cloud has throttled them: wrapped: Run: TooMany: slow down"))
	r.Report("r", create, err)
	r.Expect(r.left()).To(Equal(40*time.Second), "it is no answer of the cloud")
	r.Expect(r.pair().waiting).To(BeEmpty())

	_, refused := r.refuse(pair{"r", create})
	r.Expect(refused).To(MatchError(err.Error()))
	r.Expect(r.Closed("r", create)).To(Equal(refused))
	r.Expect(r.Closed("r", read)).To(Succeed())
	r.passes(40*time.Second - 1)
	_, refused = r.refuse(pair{"r", create})
	r.Expect(driver.RetryAfterOf(refused)).To(Equal(time.Duration(1)))
	r.passes(1)
	_, refused = r.refuse(pair{"r", create})
	r.Expect(refused).NotTo(HaveOccurred())
	_, refused = r.refuse(pair{"unknown", create})
	r.Expect(refused).NotTo(HaveOccurred())
}

// However often the cloud throttles in a row, the pause stays the longest.
func TestPausesDoNotOverflow(t *testing.T) {
	g := NewWithT(t)
	for n, want := range map[int]time.Duration{0: time.Second, 1: time.Second, 2: 2 * time.Second, 6: 32 * time.Second, 7: lastPause,
		100: lastPause, 1000: lastPause} {
		g.Expect(pause(n)).To(Equal(want), "%d", n)
	}
}
