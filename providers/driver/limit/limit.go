// Package limit keeps the calls of this process to a cloud within what the cloud admits.
//
// # Limits
//
// Calls are counted by limit scope (driver.Driver.LimitScope: that for which the cloud counts them together, normally an
// account and a region) and by driver.CallKind. Each pair has a token bucket of the driver's Rate for the kind, which is
// full at first; kinds without a Rate are not limited until the cloud throttles them. Pairs do not influence each other.
//
// # Order
//
// A caller that has to wait gets a place in one queue for the pair, first come, first served, whether it waits with a goroutine
// (Do) or comes back later (Admit). An object has one place for each kind. Tokens are taken when a call may begin and not
// when a place is given, so the calls that have begun never exceed burst + rate × time, however late an object comes back.
// The token of an object that does not come back when its turn has come is held for it for 5 seconds, then those behind it
// may go; it is still ahead of them when it comes, for 10 minutes. So no caller waits for more calls than there were ahead of
// it, and an object that vanishes without Forget holds up nothing for more than the 5 seconds.
//
// # Closure
//
// A call that is answered with an error of class Throttle closes its pair for all: for the error's RetryAfter (one hour at
// most, after which the cloud is asked again), else for a time that doubles from a second to a minute while throttles
// follow each other, spread by a fifth. Answers to calls that had begun before the pair opened again belong to the same
// closure: they only lengthen it, if their RetryAfter ends later. The next throttle counts as the first again once a call
// that began after the opening was admitted, or the rate has recovered. Admitted means any answer of the cloud but a
// throttle; an error of class Unknown or Refused does not count, since the cloud may never have seen the call.
//
// When the pair opens again, one call may be made at once, and the rate is half of what it was, 1/32 of its limit at the
// least. From then on it rises linearly, by all of the limit in 5 minutes: AIMD, as TCP. The burst is reduced in
// proportion. A limit that was configured three times too high settles: four fifths and more of what the cloud really
// admits are used, for about one throttle in a minute (TestALimitThatIsThreeTimesTooHighSettles). For a kind without a
// Rate, the limit from which it is halved is the rate of the calls of the latest 10 seconds, one per second at the least;
// it is not limited any more once it has recovered.
//
// # What it does not do
//
// It limits beginnings, not calls under way: a call that hangs or panics holds nothing. A call here is one call of a
// Driver's method; how many requests that makes of the cloud is up to the driver, whose Rates have to allow for it.
// Nothing is persisted: a new process begins with full buckets. A clock that is set back delays nothing: all waits stay as
// long as they were. Pairs that were not used for an hour are dropped, with their metrics.
package limit

import (
	"context"
	"maps"
	"math/rand/v2"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

const (
	// maxSleep is the longest closure that Do waits for.
	maxSleep = time.Second
	// exactWait is up to which Admit returns the whole time until the turn.
	exactWait = time.Minute
	// idleAfter is when a pair that is not used is dropped.
	idleAfter = time.Hour
	// sweepEvery is how often pairs and places are looked through for what may be dropped.
	sweepEvery = time.Minute
	// maxLabels is how many limit scopes have metrics of their own.
	maxLabels = 200
	// otherLabel is the limit scope in the metrics of all others.
	otherLabel = "other"
)

// Limiter limits the calls to clouds. All methods may be called concurrently.
type Limiter struct {
	clock clock.Clock
	rates map[driver.CallKind]driver.Rate
	// spread lengthens the pause after a throttle.
	spread func(time.Duration) time.Duration

	mu      sync.Mutex
	buckets map[pair]*bucket
	places  map[types.NamespacedName]map[driver.CallKind]*waiter
	// labels counts the buckets of each limit scope that has metrics of its own.
	labels map[string]int
	swept  time.Time
}

// pair is what calls are counted by.
type pair struct {
	scope string
	kind  driver.CallKind
}

// New returns a Limiter with the rates of a driver's Traits. A kind whose rate is missing, or not above zero, has no
// limit; a burst is one at the least.
func New(clk clock.Clock, rates map[driver.CallKind]driver.Rate) *Limiter {
	l := &Limiter{
		clock:   clk,
		rates:   maps.Clone(rates),
		spread:  func(d time.Duration) time.Duration { return d + rand.N(max(d/5, 1)) },
		buckets: map[pair]*bucket{},
		places:  map[types.NamespacedName]map[driver.CallKind]*waiter{},
		labels:  map[string]int{},
		swept:   clk.Now(),
	}
	collector.add(l)
	return l
}

// SpreadBy has random, which returns a random time below another one, spread the pauses after throttles instead of rand.N. Call it before
// the first use.
func (l *Limiter) SpreadBy(random func(below time.Duration) time.Duration) *Limiter {
	l.spread = func(d time.Duration) time.Duration { return d + random(max(d/5, 1)) }
	return l
}

// Admit returns zero if the object may make a call of the kind now, which it is expected to do: the token is taken. Else
// it returns when to ask again, and keeps the object's place in the queue. That is when its turn comes, after the closure
// if there is one; a wait of more than a minute is shortened to a minute and an eighth of the rest, since those ahead may
// give up. It never blocks. An object that asks in another limit scope gives up its place in the former one.
func (l *Limiter) Admit(limitScope string, kind driver.CallKind, key types.NamespacedName) time.Duration {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	b := l.bucket(limitScope, kind, now)
	w := l.places[key][kind]
	if w != nil && w.bucket != b {
		l.drop(key, kind, w)
		w = nil
	}
	if w == nil {
		w = &waiter{bucket: b}
	}
	wait := b.ask(w, now)
	if wait <= 0 {
		l.unplace(key, kind)
		return 0
	}
	wait = b.left(now) + shorten(wait-b.left(now))
	w.due = now.Add(wait)
	if l.places[key] == nil {
		l.places[key] = map[driver.CallKind]*waiter{}
	}
	l.places[key][kind] = w
	return wait
}

// GiveBack returns the token of an object that Admit let go and that makes no call after all.
func (l *Limiter) GiveBack(limitScope string, kind driver.CallKind) {
	l.mu.Lock()
	defer l.mu.Unlock()
	b := l.buckets[pair{limitScope, kind}]
	if b == nil {
		return
	}
	b.advance(l.clock.Now())
	b.load = max(b.load-1, 0)
	b.tokens = min(b.tokens+1, b.capacity())
	b.notify()
}

func shorten(wait time.Duration) time.Duration {
	if wait <= exactWait {
		return wait
	}
	return exactWait + (wait-exactWait)/8
}

// Forget gives up the places of an object, of all kinds. To be called when the object is gone or has nothing to call for
// any more.
func (l *Limiter) Forget(key types.NamespacedName) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for kind, w := range l.places[key] {
		l.drop(key, kind, w)
	}
}

// Do waits for its turn and makes the call. It makes none, and returns an error of class Throttle at once, with the time
// to wait as RetryAfter, if the kind is closed for more than a second (with the words of the call that was throttled) or
// if its turn does not come before the deadline of the context; also if that turns out while it waits. If the context ends
// while it waits, the error is of class Refused, since nothing was called. What the call returns is reported and returned.
// Do does not keep a place for the next try, so where there are always more calls than turns within their deadlines,
// objects should ask Admit.
func (l *Limiter) Do(ctx context.Context, limitScope string, kind driver.CallKind, call func(context.Context) error) error {
	began, err := l.turn(ctx, limitScope, kind)
	if err != nil {
		return err
	}
	err = call(ctx)
	l.report(limitScope, kind, began, err)
	return err
}

// turn waits for the turn of a call and returns when that is.
func (l *Limiter) turn(ctx context.Context, limitScope string, kind driver.CallKind) (time.Time, error) {
	w := &waiter{}
	for {
		now, wait, changed, err := l.ask(ctx, limitScope, kind, w)
		if err != nil || wait <= 0 {
			return now, err
		}
		timer := l.clock.NewTimer(wait)
		select {
		case <-ctx.Done():
		case <-timer.C():
		case <-changed:
		}
		timer.Stop()
	}
}

// ask returns how long a call has to wait from now on, and a channel that is closed when that changes. With an error it
// waits no more.
func (l *Limiter) ask(ctx context.Context, limitScope string, kind driver.CallKind, w *waiter) (
	now time.Time, wait time.Duration, changed <-chan struct{}, err error,
) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now = l.clock.Now()
	b := l.bucket(limitScope, kind, now)
	if err := ctx.Err(); err != nil {
		b.giveUp(w)
		return now, 0, nil, uncalled(kind, err)
	}
	if left := b.left(now); left > maxSleep {
		b.giveUp(w)
		return now, 0, nil, closed(kind, left, b.refusal)
	}
	wait = b.ask(w, now)
	// Contexts know the real time only, whatever the clock is.
	if deadline, ok := ctx.Deadline(); ok && wait > 0 && wait >= time.Until(deadline) {
		b.giveUp(w)
		return now, 0, nil, paced(kind, wait)
	}
	return now, wait, b.changes(), nil
}

// Closed returns the error with which Do refuses calls of a closed kind, for conditions of what waits for Admit; nil while
// it is open.
func (l *Limiter) Closed(limitScope string, kind driver.CallKind) error {
	_, err := l.refuse(pair{limitScope, kind})
	return err
}

// refuse returns the time, and an error if the pair is closed.
func (l *Limiter) refuse(p pair) (time.Time, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	b := l.buckets[p]
	if b == nil {
		return now, nil
	}
	b.advance(now)
	if left := b.left(now); left > 0 {
		return now, closed(p.kind, left, b.refusal)
	}
	return now, nil
}

// Report records what has become of a call that was not made by Do, and has just been answered: nil or its error, or those
// about each of many that it was for, of which a throttle counts most, and among those the longest RetryAfter. Errors of
// the Limiter's own count for nothing, since they are about no call.
func (l *Limiter) Report(limitScope string, kind driver.CallKind, errs ...error) {
	l.report(limitScope, kind, l.clock.Now(), errs...)
}

// report records the answers to a call that began at that time.
func (l *Limiter) report(limitScope string, kind driver.CallKind, began time.Time, errs ...error) {
	admitted, throttle := assess(errs)
	if throttle == nil && !admitted {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	now := l.clock.Now()
	if throttle != nil {
		b := l.bucket(limitScope, kind, now)
		b.close(now, began, throttle, l.spread)
		return
	}
	if b := l.buckets[pair{limitScope, kind}]; b != nil {
		b.advance(now)
		b.admitted(began)
	}
}
