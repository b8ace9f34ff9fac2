package limit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

// log records what calls did and when, within a bubble of synctest.
type log struct {
	mu    sync.Mutex
	began time.Time
	lines []string
}

func (l *log) add(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf("%v ", time.Since(l.began).Round(time.Millisecond))+fmt.Sprintf(format, args...))
}

func (l *log) all() []string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]string{}, l.lines...)
}

// inTime runs a test on a Limiter in a bubble of synctest, where waits take no time.
func inTime(t *testing.T, perSecond float64, burst int, test func(t *testing.T, l *Limiter, log *log)) {
	synctest.Test(t, func(t *testing.T) {
		l := New(clock.RealClock{}, one(perSecond, burst))
		l.spread = func(d time.Duration) time.Duration { return d }
		test(t, l, &log{began: time.Now()})
	})
}

func (l *log) call(name string, err error) func(context.Context) error {
	return func(context.Context) error {
		l.add("%s", name)
		return err
	}
}

func TestDoWaitsInTurn(t *testing.T) {
	inTime(t, 2, 1, func(t *testing.T, l *Limiter, log *log) {
		for i := range 5 {
			go func() { _ = l.Do(t.Context(), "r", create, log.call(fmt.Sprint(i), nil)) }()
			synctest.Wait()
		}
		NewWithT(t).Expect(l.Admit("r", create, key("a"))).To(Equal(2500*time.Millisecond), "behind those that block")
		time.Sleep(600 * time.Millisecond)
		NewWithT(t).Expect(l.Do(t.Context(), "r", read, log.call("read", nil))).To(Succeed())
		time.Sleep(time.Minute)
		NewWithT(t).Expect(log.all()).To(Equal([]string{"0s 0", "500ms 1", "600ms read", "1s 2", "1.5s 3", "2s 4"}))
		NewWithT(t).Expect(l.buckets[pair{"r", create}].waiting).To(HaveLen(1))
	})
}

func TestDoReturnsWhatTheCallReturns(t *testing.T) {
	r := newRig(t, nil)
	for _, want := range []error{nil, errors.New("x"), throttle(time.Minute)} {
		got := r.Do(context.WithValue(t.Context(), t, "value"), "r", create, func(ctx context.Context) error {
			r.Expect(ctx.Value(t)).To(Equal("value"))
			return want
		})
		if want == nil {
			r.Expect(got).NotTo(HaveOccurred())
		} else {
			r.Expect(got).To(BeIdenticalTo(want))
		}
	}
	r.Expect(r.left()).To(Equal(time.Minute), "and reports it")
}

func TestDoNeverWaitsLongerThanItMay(t *testing.T) {
	inTime(t, 1, 1, func(t *testing.T, l *Limiter, log *log) {
		g := NewWithT(t)
		within := func(d time.Duration, name string) error {
			ctx, cancel := context.WithTimeout(t.Context(), d)
			defer cancel()
			return l.Do(ctx, "r", create, log.call(name, nil))
		}
		g.Expect(within(time.Second, "a")).To(Succeed())
		err := within(time.Second, "b")
		var answer *driver.Error
		g.Expect(errors.As(err, &answer)).To(BeTrue())
		g.Expect(answer.Class).To(Equal(driver.ClassThrottle))
		g.Expect(answer.Operation).To(Equal("Create"))
		g.Expect(answer.RetryAfter).To(Equal(time.Second))
		g.Expect(err).To(MatchError("Create: calls are paced on this side to stay within the cloud's limit, and the turn of this one comes after its deadline"))
		g.Expect(within(time.Second+1, "c")).To(Succeed())
		g.Expect(log.all()).To(Equal([]string{"0s a", "1s c"}), "b neither waited nor kept a place")
		l.Report("r", create, err)
		g.Expect(l.buckets[pair{"r", create}].closures).To(BeZero())

		ctx, cancel := context.WithCancel(t.Context())
		go func() { log.add("%v", l.Do(ctx, "r", create, log.call("d", nil))) }()
		synctest.Wait()
		go func() { _ = l.Do(t.Context(), "r", create, log.call("e", nil)) }()
		time.Sleep(500 * time.Millisecond)
		cancel()
		time.Sleep(time.Minute)
		g.Expect(log.all()[2:]).To(Equal([]string{
			"1.5s Create: the call was not made: it has waited for its turn: context canceled", "2s e",
		}), "e takes the turn of d")
		err = l.Do(ctx, "r", create, log.call("f", nil))
		g.Expect(driver.IsRefused(err)).To(BeTrue())
		g.Expect(err).To(MatchError(context.Canceled))
		g.Expect(log.all()).To(HaveLen(4), "and no token is taken for f")
		g.Expect(l.Admit("r", create, key("x"))).To(BeZero())
	})
}

func TestAClosureEndsTheWaitOfAll(t *testing.T) {
	inTime(t, 1, 1, func(t *testing.T, l *Limiter, log *log) {
		slow := func(context.Context) error {
			time.Sleep(1500 * time.Millisecond)
			return throttle(10 * time.Second)
		}
		go func() { _ = l.Do(t.Context(), "r", create, slow) }()
		synctest.Wait()
		for _, name := range []string{"a", "b", "c"} {
			go func() {
				err := l.Do(t.Context(), "r", create, log.call(name, nil))
				if err != nil {
					log.add("%s is sent away for %v", name, driver.RetryAfterOf(err))
				}
			}()
			synctest.Wait()
		}
		time.Sleep(2 * time.Second)
		NewWithT(t).Expect(log.all()[0]).To(Equal("1s a"))
		NewWithT(t).Expect(log.all()[1:]).To(ConsistOf("1.5s b is sent away for 10s", "1.5s c is sent away for 10s"))
		NewWithT(t).Expect(l.buckets[pair{"r", create}].waiting).To(BeEmpty())
	})
}

// A slow call that is throttled after the pause belongs to the throttles before it.
func TestASlowCallClosesNothingAgain(t *testing.T) {
	inTime(t, 1, 2, func(t *testing.T, l *Limiter, log *log) {
		go func() {
			_ = l.Do(t.Context(), "r", create, func(context.Context) error {
				time.Sleep(10 * time.Second)
				return throttle(0)
			})
		}()
		synctest.Wait()
		l.Report("r", create, throttle(0))
		time.Sleep(11 * time.Second)
		NewWithT(t).Expect(l.Closed("r", create)).To(Succeed())
		NewWithT(t).Expect(l.buckets[pair{"r", create}].closures).To(Equal(1))
	})
}

func TestAShortClosureIsWaitedFor(t *testing.T) {
	for after, want := range map[time.Duration]string{time.Second: "1s a", time.Second + 1: "0s sent away"} {
		inTime(t, 1, 1, func(t *testing.T, l *Limiter, log *log) {
			l.Report("r", create, throttle(after))
			if l.Do(t.Context(), "r", create, log.call("a", nil)) != nil {
				log.add("sent away")
			}
			NewWithT(t).Expect(log.all()).To(Equal([]string{want}))
		})
	}
}

// A call that panics, ends its goroutine or hangs keeps no turn from others.
func TestCallsThatDoNotReturn(t *testing.T) {
	inTime(t, 1, 1, func(t *testing.T, l *Limiter, log *log) {
		g := NewWithT(t)
		g.Expect(func() {
			_ = l.Do(t.Context(), "r", create, func(context.Context) error { panic("bug") })
		}).To(PanicWith("bug"))
		hang := make(chan struct{})
		go func() {
			_ = l.Do(t.Context(), "r", create, func(context.Context) error {
				log.add("hangs")
				<-hang
				return nil
			})
		}()
		synctest.Wait()
		g.Expect(l.Do(t.Context(), "r", create, log.call("next", nil))).To(Succeed())
		g.Expect(log.all()).To(Equal([]string{"1s hangs", "2s next"}))
		close(hang)
		synctest.Wait()
	})
}

// A place ahead that is given up is not waited for.
func TestThoseThatBlockMoveUp(t *testing.T) {
	inTime(t, 1, 1, func(t *testing.T, l *Limiter, log *log) {
		l.Admit("r", create, key("first"))
		l.Admit("r", create, key("second"))
		go func() { _ = l.Do(t.Context(), "r", create, log.call("a", nil)) }()
		synctest.Wait()
		l.Forget(key("second"))
		time.Sleep(time.Minute)
		NewWithT(t).Expect(log.all()).To(Equal([]string{"1s a"}))
	})
}

// Many goroutines at once: for the race detector, and each call is made once.
func TestManyAtOnce(t *testing.T) {
	inTime(t, 1000, 10, func(t *testing.T, l *Limiter, log *log) {
		var all sync.WaitGroup
		var calls counter
		for i := range 300 {
			all.Go(func() {
				for range 3 {
					_ = l.Do(t.Context(), fmt.Sprint("r", i%3), create, func(context.Context) error {
						calls.add(1)
						return nil
					})
				}
			})
			all.Go(func() {
				for l.Admit("r0", create, numbered(i)) > 0 && i%7 != 0 {
					time.Sleep(10 * time.Millisecond)
				}
				l.Forget(numbered(i))
				l.Report(fmt.Sprint("r", i%3), read, throttle(0), nil)
			})
		}
		all.Wait()
		NewWithT(t).Expect(calls.n).To(Equal(900))
		NewWithT(t).Expect(l.places).To(BeEmpty())
		NewWithT(t).Expect(time.Since(log.began)).To(BeNumerically("<", 3*time.Second), "no turn is lost for long")
	})
}

type counter struct {
	sync.Mutex
	n int
}

func (c *counter) add(n int) {
	c.Lock()
	defer c.Unlock()
	c.n += n
}
