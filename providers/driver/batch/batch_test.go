package batch

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

func TestRequestsAreGathered(t *testing.T) {
	r := newRig(t)
	r.start(t.Context())
	r.ask("r", "a", "b", "a")
	r.passes(99 * time.Millisecond)
	r.Consistently(r.called, "50ms").Should(BeEmpty())
	r.passes(time.Millisecond)
	r.wakes("a")
	r.wakes("b")
	r.Expect(r.called()).To(Equal([]string{"r: a b"}), "each is asked about once")

	answer := r.take("r", "a")
	r.Expect(answer.Value).To(Equal("of a"))
	r.Expect(answer.At).To(Equal(time.Unix(1000, 0).Add(100 * time.Millisecond)))
	_, again := r.batcher.Take(key("a"), handle("r", "a"))
	r.Expect(again).To(BeFalse(), "an answer is given once")
	r.take("r", "b")
	r.Expect(r.batcher.requests).To(BeEmpty())

	r.ask("r", "a")
	r.passes(100 * time.Millisecond)
	r.Consistently(r.called, "50ms").Should(HaveLen(1), "calls are a second apart")
	r.passes(900 * time.Millisecond)
	r.take("r", "a")
}

func TestABatchIsLimited(t *testing.T) {
	r := newRig(t)
	r.ask("r", "a", "b", "c", "d", "e", "f", "g")
	r.start(t.Context())
	r.Eventually(r.called).Should(Equal([]string{"r: a b c"}), "a full batch does not wait")
	r.passes(time.Second)
	r.take("r", "f")
	r.passes(time.Second)
	r.take("r", "g")
	r.Expect(r.called()).To(Equal([]string{"r: a b c", "r: d e f", "r: g"}))
}

func TestAHangingScopeHoldsUpNoOther(t *testing.T) {
	r := newRig(t)
	r.hang[driver.Scope{Location: "dead"}] = make(chan struct{})
	r.start(t.Context())
	r.ask("dead", "a")
	r.passes(100 * time.Millisecond)
	r.Eventually(r.called).Should(Equal([]string{"dead: a"}))
	r.ask("dead", "b")
	r.ask("live", "c")
	r.passes(100 * time.Millisecond)
	r.Expect(r.take("live", "c").Value).To(Equal("of c"))
	r.clock.Step(time.Hour)
	r.Consistently(r.called, "50ms").Should(HaveLen(2), "one call at a time in a scope")
	close(r.hang[driver.Scope{Location: "dead"}])
	r.take("dead", "a")
	r.take("dead", "b")
}

// What is withdrawn before the call is not asked; what is withdrawn while it is under way gets no answer.
func TestForget(t *testing.T) {
	r := newRig(t)
	r.hang[driver.Scope{Location: "r"}] = make(chan struct{})
	r.ask("r", "a", "b")
	r.batcher.Forget(key("a"))
	r.start(t.Context())
	r.passes(100 * time.Millisecond)
	r.Eventually(r.called).Should(Equal([]string{"r: b"}))
	r.batcher.Forget(key("b"))
	r.ask("r", "b", "c")
	close(r.hang[driver.Scope{Location: "r"}])
	r.passes(time.Second)
	r.take("r", "b")
	r.take("r", "c")
	r.Expect(r.called()).To(Equal([]string{"r: b", "r: b c"}), "the new request of b is another one")

	r.Eventually(r.idle).Should(BeTrue())
	r.ask("r", "d")
	r.Eventually(r.clock.HasWaiters).Should(BeTrue())
	r.batcher.Forget(key("d"))
	r.clock.Step(time.Hour)
	r.Eventually(r.idle).Should(BeTrue())
	r.ask("r", "e")
	r.passes(time.Hour)
	r.take("r", "e")
	r.Expect(r.called()).To(HaveLen(3))
	r.Expect(r.batcher.requests).To(BeEmpty())
}

func TestErrorsAreAnswersOfTheirOwn(t *testing.T) {
	r := newRig(t)
	r.answers(func(h driver.Handle) driver.Answer[string] {
		if h.ProviderID == "b" {
			return driver.Answer[string]{Err: driver.NewTerminalError("Call", "", errors.New("protected"))}
		}
		return driver.Answer[string]{Value: "good"}
	})
	r.start(t.Context())
	r.ask("r", "a", "b")
	r.passes(100 * time.Millisecond)
	r.Expect(r.take("r", "a").Err).NotTo(HaveOccurred())
	r.Expect(driver.IsTerminal(r.take("r", "b").Err)).To(BeTrue())
}

// Throttling is of the account: the whole scope waits, and no caller has to ask again.
func TestAThrottledScopeWaits(t *testing.T) {
	r := newRig(t)
	throttled := driver.NewThrottleError("Call", "", 0, errors.New("too many"))
	r.answers(func(h driver.Handle) driver.Answer[string] {
		if h.ProviderID == "a" {
			return driver.Answer[string]{Value: "passed"}
		}
		return driver.Answer[string]{Err: throttled}
	})
	r.start(t.Context())
	r.ask("r", "a", "b")
	r.passes(100 * time.Millisecond)
	r.Expect(r.take("r", "a").Value).To(Equal("passed"), "before the cloud had enough")
	r.wakes("a")
	r.wakes("b")
	pending := func() error { return r.batcher.Ask(key("b"), handle("r", "b")).Throttled }
	r.Eventually(pending).Should(MatchError(throttled))

	r.ask("r", "c")
	r.passes(30 * time.Second)
	r.Consistently(r.called, "50ms").Should(HaveLen(1))
	r.passes(45 * time.Second) // a minute and up to a fifth
	r.Eventually(r.called).Should(Equal([]string{"r: a b", "r: b c"}))
	r.answers(nil)
	r.passes(75 * time.Second)
	r.Consistently(r.called, "50ms").Should(HaveLen(2), "the wait has grown")
	r.passes(75 * time.Second)
	r.take("r", "b")
	r.take("r", "c")
	r.Expect(r.batcher.queues[driver.Scope{Location: "r"}].refusals).To(BeZero())
}

// The wait that the cloud asks for counts.
func TestRetryAfter(t *testing.T) {
	r := newRig(t)
	r.answers(func(driver.Handle) driver.Answer[string] {
		return driver.Answer[string]{Err: driver.NewThrottleError("Call", "", time.Hour, errors.New("too many"))}
	})
	r.start(t.Context())
	r.ask("r", "a")
	r.passes(100 * time.Millisecond)
	r.Eventually(r.called).Should(HaveLen(1))
	r.passes(59 * time.Minute)
	r.Consistently(r.called, "50ms").Should(HaveLen(1))
}

// A process that ends delivers nothing: its calls fail because of that.
func TestTheEndOfAProcessIsNoAnswer(t *testing.T) {
	r := newRig(t)
	r.hang[driver.Scope{Location: "r"}] = make(chan struct{})
	ctx, cancel := context.WithCancel(t.Context())
	r.start(ctx)
	r.ask("r", "a")
	r.passes(100 * time.Millisecond)
	r.Eventually(r.called).Should(HaveLen(1))
	cancel()
	r.Consistently(r.queue.Len, "50ms").Should(BeZero())
	_, ok := r.batcher.Take(key("a"), handle("r", "a"))
	r.Expect(ok).To(BeFalse())
}

// Machines come and go in any order from many workers; each gets its answer, in as few calls as the pace allows.
func TestManyMachines(t *testing.T) {
	r := newRig(t)
	r.start(t.Context())
	const n = 60
	var workers sync.WaitGroup
	for i := range n {
		workers.Go(func() { r.ask("r", fmt.Sprint(i)) })
	}
	workers.Wait()
	for range n/3 + 2 {
		r.passes(time.Second)
		r.Eventually(func() bool { return r.clock.HasWaiters() || r.idle() }).Should(BeTrue())
		if r.idle() {
			break
		}
	}
	for i := range n {
		r.Expect(r.take("r", fmt.Sprint(i)).Value).To(Equal(fmt.Sprint("of ", i)))
	}
	r.Expect(len(r.called())).To(BeNumerically("<=", n/3+2))
}

// Those that are deleted one after the other share a call every few seconds, and who fills it does not wait.
func TestAFullBatchEndsTheWait(t *testing.T) {
	r := newRig(t)
	r.batcher.opts.Linger = time.Hour
	r.start(t.Context())
	r.ask("r", "a")
	r.passes(100 * time.Millisecond)
	r.wakes("a")
	r.ask("r", "b", "c")
	r.passes(time.Minute)
	r.Consistently(r.called, "50ms").Should(Equal([]string{"r: a"}), "there may be more to come")
	r.ask("r", "d")
	r.Eventually(r.called).Should(Equal([]string{"r: a", "r: b c d"}))
	r.ask("r", "e")
	r.passes(time.Hour)
	r.Eventually(r.called).Should(HaveLen(3), "it comes without others too")
}
