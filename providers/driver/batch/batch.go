// Package batch gathers the requests of many machines to the cloud into few calls: a reconcile queues its request and
// returns, one call is sent for all that are queued in a scope, and each machine is enqueued when its answer is there.
//
// Each scope (account and region) has a queue and at most one call under way, so a scope that hangs or throttles holds up
// no other. Nothing is persisted: the requests of a process that dies are lost, and the next one queues its own.
package batch

import (
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
)

// Call asks the cloud about handles of one scope, at most Options.Size of them, each once or more. It answers about each in
// their order, and must return when the context is done. A request that is answered with class Throttle stays queued; every
// other error is an answer, and what follows is decided by the machine.
type Call[T any] func(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[T]

// Options of a Batcher.
type Options struct {
	// Clock for times and waits.
	Clock clock.Clock
	// Gather is how long the first request of a batch waits for others.
	Gather time.Duration
	// Interval is the least time between the beginnings of two calls in one scope.
	Interval time.Duration
	// Linger is that time as long as the requests do not fill a call.
	Linger time.Duration
	// Size is the number of handles in one call at most.
	Size int
	// Backoff returns how long a scope waits after the n-th throttled call in a row; n counts from 1.
	Backoff func(n int) time.Duration
	// Random returns a random time below another one, by which that is spread. Default: rand.N.
	Random func(below time.Duration) time.Duration
}

// DefaultOptions returns the defaults, without a backoff.
//
// Machines that are deleted together are reconciled within some tens of milliseconds, so 100 ms gather most of them. Hundreds are
// deleted one after the other, for many seconds: calls for the few that come in half a second would be as many as a fifth of the
// machines, so there is one every three seconds until they fill it. That delays a deletion, which asks twice, by at most six seconds, and
// only where others were deleted just before. Two full batches a second, with the two calls that each batch of terminations and of
// dependants makes, take 2 of the 5 mutating calls and 6 of the 20 others that EC2 grants per second. 100 handles keep requests
// and answers small and stay below EC2's 200 values of a filter.
func DefaultOptions() Options {
	return Options{
		Clock: clock.RealClock{}, Gather: 100 * time.Millisecond, Interval: 500 * time.Millisecond, Linger: 3 * time.Second, Size: 100,
	}
}

// WithDefaults returns the options with the defaults in place of zero values. A negative time means none.
func (o Options) WithDefaults() Options {
	defaults := DefaultOptions()
	if o.Clock == nil {
		o.Clock = defaults.Clock
	}
	if o.Random == nil {
		o.Random = rand.N[time.Duration]
	}
	if o.Gather == 0 {
		o.Gather = defaults.Gather
	}
	if o.Interval == 0 {
		o.Interval = defaults.Interval
	}
	if o.Linger == 0 {
		o.Linger = defaults.Linger
	}
	if o.Size == 0 {
		o.Size = defaults.Size
	}
	return o
}

// Answer of the cloud about one handle.
type Answer[T any] struct {
	driver.Answer[T]
	// At is when the call began: the answer holds at that time or later.
	At time.Time
}

// Pending is a request that has no answer yet.
type Pending struct {
	// Since is when it was queued.
	Since time.Time
	// Throttled is the latest error of the scope if its calls wait because the cloud throttles them, else nil.
	Throttled error
}

// Batcher asks the cloud for many machines at once. It implements manager.Runnable.
type Batcher[T any] struct {
	operation string
	call      Call[T]
	wake      *wake.Waker
	opts      Options

	mu       sync.Mutex
	ctx      context.Context // set by Start; nil before
	requests map[types.NamespacedName]map[driver.Handle]*request[T]
	queues   map[driver.Scope]*queue[T]
}

// request of one machine about one handle.
type request[T any] struct {
	key    types.NamespacedName
	handle driver.Handle
	since  time.Time
	answer *Answer[T] // nil until there is one
}

// New returns a Batcher that asks nothing before Start. The operation names it in metrics. A Backoff is required.
func New[T any](operation string, call Call[T], waker *wake.Waker, opts Options) *Batcher[T] {
	return &Batcher[T]{
		operation: operation,
		call:      call,
		wake:      waker,
		opts:      opts.WithDefaults(),
		requests:  map[types.NamespacedName]map[driver.Handle]*request[T]{},
		queues:    map[driver.Scope]*queue[T]{},
	}
}

// Start asks until ctx is done.
func (b *Batcher[T]) Start(ctx context.Context) error {
	b.mu.Lock()
	b.ctx = ctx
	for _, q := range b.queues {
		b.drain(q)
	}
	b.mu.Unlock()
	<-ctx.Done()
	return nil
}

// NeedLeaderElection is true: only the leader asks the cloud.
func (b *Batcher[T]) NeedLeaderElection() bool { return true }

// Ask queues the request unless it is queued already. The machine is woken when Take has the answer.
func (b *Batcher[T]) Ask(key types.NamespacedName, handle driver.Handle) Pending {
	b.mu.Lock()
	defer b.mu.Unlock()
	q, ok := b.queues[handle.Scope]
	if !ok {
		q = &queue[T]{scope: handle.Scope, full: make(chan struct{}, 1)}
		b.queues[handle.Scope] = q
	}
	asked, ok := b.requests[key][handle]
	if !ok {
		asked = &request[T]{key: key, handle: handle, since: b.opts.Clock.Now()}
		if b.requests[key] == nil {
			b.requests[key] = map[driver.Handle]*request[T]{}
		}
		b.requests[key][handle] = asked
		q.waiting = append(q.waiting, asked)
		if len(q.waiting) >= b.opts.Size {
			q.hasten()
		}
		b.drain(q)
	}
	return Pending{Since: asked.since, Throttled: q.throttled}
}

// Take returns the answer to a request, once; ok is false if there is none yet or nothing was requested.
func (b *Batcher[T]) Take(key types.NamespacedName, handle driver.Handle) (answer Answer[T], ok bool) {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked, ok := b.requests[key][handle]
	if !ok || asked.answer == nil {
		return Answer[T]{}, false
	}
	b.drop(asked)
	return *asked.answer, true
}

// Forget withdraws the requests of the machine and drops the answers to them. A call that is under way is not stopped.
func (b *Batcher[T]) Forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for handle, asked := range b.requests[key] {
		b.queues[handle.Scope].withdraw(asked)
	}
	delete(b.requests, key)
}

// drop ends a request. b.mu is held.
func (b *Batcher[T]) drop(asked *request[T]) {
	delete(b.requests[asked.key], asked.handle)
	if len(b.requests[asked.key]) == 0 {
		delete(b.requests, asked.key)
	}
}

// wanted returns whether the request has not been withdrawn. b.mu is held.
func (b *Batcher[T]) wanted(asked *request[T]) bool {
	return b.requests[asked.key][asked.handle] == asked
}
