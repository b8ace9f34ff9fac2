package batch

import (
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// queue of the requests of one scope. The Batcher's lock guards it.
type queue[T any] struct {
	scope driver.Scope
	// waiting are the requests that no call under way is about, the oldest first.
	waiting []*request[T]
	// full wakes the goroutine that waits for more requests.
	full chan struct{}
	// running is true while a goroutine works on the queue; there is none while it is empty.
	running bool
	// called is when the latest call began.
	called time.Time
	// until is when calls may be made again after throttling, of which there were refusals in a row; throttled is the last one.
	until     time.Time
	refusals  int
	throttled error
}

// due is when the next call is to be made. There is at least one request.
func (q *queue[T]) due(opts Options) time.Time {
	due, pause := q.waiting[0].since.Add(opts.Gather), max(opts.Linger, opts.Interval)
	if len(q.waiting) >= opts.Size {
		due, pause = q.waiting[0].since, opts.Interval
	}
	if !q.called.IsZero() {
		due = latest(due, q.called.Add(pause))
	}
	return latest(due, q.until)
}

// hasten has the goroutine look again when the next call is due.
func (q *queue[T]) hasten() {
	select {
	case q.full <- struct{}{}:
	default:
	}
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}

// take removes the requests of the next call.
func (q *queue[T]) take(size int) []*request[T] {
	n := min(size, len(q.waiting))
	taken := slices.Clone(q.waiting[:n])
	q.waiting = slices.Delete(q.waiting, 0, n)
	return taken
}

func (q *queue[T]) withdraw(asked *request[T]) {
	q.waiting = slices.DeleteFunc(q.waiting, func(other *request[T]) bool { return other == asked })
}

// drain has a goroutine work on the queue if it has work and none does. b.mu is held.
func (b *Batcher[T]) drain(q *queue[T]) {
	if b.ctx == nil || q.running || len(q.waiting) == 0 {
		return
	}
	q.running = true
	go b.work(b.ctx, q)
}

// work makes calls until the queue is empty.
func (b *Batcher[T]) work(ctx context.Context, q *queue[T]) {
	for ctx.Err() == nil {
		wait, more := b.next(q)
		if !more {
			return
		}
		if wait <= 0 {
			b.flush(ctx, q)
			continue
		}
		timer := b.opts.Clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-q.full:
		}
		timer.Stop()
	}
}

// next returns the time until the next call; more is false if there is nothing to ask, and the goroutine ends.
func (b *Batcher[T]) next(q *queue[T]) (wait time.Duration, more bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(q.waiting) == 0 {
		q.running = false
		return 0, false
	}
	return q.due(b.opts).Sub(b.opts.Clock.Now()), true
}

// flush makes one call and delivers its answers.
func (b *Batcher[T]) flush(ctx context.Context, q *queue[T]) {
	b.mu.Lock()
	asked := q.take(b.opts.Size)
	began := b.opts.Clock.Now()
	q.called = began
	b.mu.Unlock()
	if len(asked) == 0 {
		return // Withdrawn meanwhile.
	}

	handles := make([]driver.Handle, 0, len(asked))
	for _, a := range asked {
		handles = append(handles, a.handle)
	}
	answers := b.answers(ctx, q.scope, handles)
	if ctx.Err() != nil {
		return // The answers are about the end of this process.
	}
	b.measure(q.scope, asked, began)
	for _, key := range b.deliver(q, asked, answers, began) {
		b.wake.Enqueue(key)
	}
}

// answers makes the call. What the driver does not answer is an error of that handle, a panic one of all.
func (b *Batcher[T]) answers(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[T] {
	var answers []driver.Answer[T]
	err := driver.Recover(ctx, b.operation, func() error {
		answers = b.call(ctx, scope, handles)
		return nil
	})
	if err == nil {
		err = errors.Errorf("%s: the driver gave no answer", b.operation)
	}
	for len(answers) < len(handles) {
		answers = append(answers, driver.Answer[T]{Err: err})
	}
	return answers
}

// deliver keeps the answers for their machines and returns those to wake. What was throttled is asked again first, once the
// scope may be asked again; when throttling begins, all that wait are woken to report it.
func (b *Batcher[T]) deliver(q *queue[T], asked []*request[T], answers []driver.Answer[T], began time.Time) []types.NamespacedName {
	b.mu.Lock()
	defer b.mu.Unlock()
	var concerned []types.NamespacedName
	var again []*request[T]
	calm := q.throttled == nil
	q.throttled = nil
	for i, a := range asked {
		err := answers[i].Err
		throttled := driver.IsThrottle(err)
		if throttled {
			q.throttled = err
		}
		switch {
		case !b.wanted(a):
		case throttled:
			again = append(again, a)
		default:
			a.answer = &Answer[T]{Answer: answers[i], At: began}
			concerned = append(concerned, a.key)
		}
	}
	q.waiting = append(again, q.waiting...)
	b.hold(q)
	if calm && q.throttled != nil {
		for _, a := range q.waiting {
			concerned = append(concerned, a.key)
		}
	}
	return concerned
}

// hold has the scope wait after throttling. b.mu is held.
func (b *Batcher[T]) hold(q *queue[T]) {
	if q.throttled == nil {
		q.refusals = 0
		return
	}
	q.refusals++
	wait := b.opts.Backoff(q.refusals)
	wait += b.opts.Random(max(wait/5, 1))
	q.until = b.opts.Clock.Now().Add(max(wait, driver.RetryAfterOf(q.throttled)))
}
