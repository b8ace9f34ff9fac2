package inframachine

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

// DefaultBackoff returns the time to wait after the n-th failure of a class in a row (n counts from
// 1): it doubles from a first value up to a last one. Capacity begins low, since the next attempt
// goes to another place; quotas, credentials and what a spec names are repaired by people.
func DefaultBackoff(class driver.Class, n int) time.Duration {
	first, last := time.Second, 5*time.Minute
	switch class {
	case driver.ClassCapacity:
		first, last = 2*time.Second, 3*time.Minute
	case driver.ClassThrottle:
		first, last = time.Second, time.Minute
	case driver.ClassQuota, driver.ClassAuth, driver.ClassUnresolved:
		first, last = 30*time.Second, 10*time.Minute
	case driver.ClassTerminal:
		first, last = time.Minute, 10*time.Minute
	case driver.ClassNotFound, driver.ClassRefused, driver.ClassUnknown:
	}
	for ; n > 1 && first < last; n-- {
		first *= 2
	}
	return min(first, last)
}

// backoff keeps, for each object, the latest failure of a call to the cloud and the time before which
// it is not repeated. It is kept in memory only: after a restart each call is tried once at once.
type backoff struct {
	clock  clock.PassiveClock
	base   func(driver.Class, int) time.Duration
	random func(below time.Duration) time.Duration

	mu       sync.Mutex
	entries  map[types.NamespacedName]*failedCall
	subjects map[types.NamespacedName]subject
}

// subject is what calls are made for.
type subject struct {
	uid      types.UID
	deleting bool
}

type failedCall struct {
	err   error
	class driver.Class
	count int
	// next counts the failures in a row for which another offering was left.
	next  int
	until time.Time
}

func newBackoff(
	clk clock.PassiveClock,
	base func(driver.Class, int) time.Duration,
	random func(below time.Duration) time.Duration,
) *backoff {
	return &backoff{
		clock: clk, base: base, random: random,
		entries: map[types.NamespacedName]*failedCall{}, subjects: map[types.NamespacedName]subject{},
	}
}

// begin is called before anything is done for an object. A failure does not outlive what the call was for: that of an earlier
// object of the name is not one of this object, and that of a launch is no reason to leave an instance running that is to be
// deleted. Only that there were too many calls holds for all that comes.
func (b *backoff) begin(key types.NamespacedName, now subject) {
	b.mu.Lock()
	defer b.mu.Unlock()
	before, known := b.subjects[key]
	b.subjects[key] = now
	if e, ok := b.entries[key]; ok && known && before != now && e.class != driver.ClassThrottle {
		delete(b.entries, key)
	}
}

// fail records a failure and returns the time to wait: what the cloud asks for, else that of the
// class, spread by a fifth so that many machines do not come back at once.
func (b *backoff) fail(key types.NamespacedName, err error) time.Duration {
	return b.failTimes(key, err, 1)
}

// failTimes is fail for a failure of which it is known otherwise that it is at least the n-th in a row.
func (b *backoff) failTimes(key types.NamespacedName, err error, n int) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	class := driver.ClassOf(err)
	e := b.entry(key, class)
	e.err, e.next = err, 0
	e.count = max(e.count+1, n)
	return b.wait(e, b.base(class, e.count))
}

// failNext records a shortage while another offering is left to try. It does not count the failure, so the other offering is tried as soon
// as after a first shortage. After that many shortages in a row it acts as fail: some offering must have been tried twice.
func (b *backoff) failNext(key types.NamespacedName, err error, offerings int) time.Duration {
	b.mu.Lock()
	class := driver.ClassOf(err)
	e := b.entry(key, class)
	if e.next >= offerings {
		b.mu.Unlock()
		return b.fail(key, err)
	}
	defer b.mu.Unlock()
	e.err = err
	e.next++
	return b.wait(e, b.base(driver.ClassCapacity, 1))
}

// entry returns what is known of the failures of a class; a new one if the latest was of another. Shortages of capacity and of quota count
// together, since a launch that may be of several types meets both by turns. b.mu is held.
func (b *backoff) entry(key types.NamespacedName, class driver.Class) *failedCall {
	short := func(c driver.Class) bool { return c == driver.ClassCapacity || c == driver.ClassQuota }
	e, ok := b.entries[key]
	if !ok || e.class != class && (!short(e.class) || !short(class)) {
		e = &failedCall{}
		b.entries[key] = e
	}
	e.class = class
	return e
}

// wait sets when the call may be repeated. b.mu is held.
func (b *backoff) wait(e *failedCall, base time.Duration) time.Duration {
	wait := max(base+b.random(max(base/5, 1)), driver.RetryAfterOf(e.err))
	e.until = b.clock.Now().Add(wait)
	return wait
}

// remaining returns the time until the call may be repeated, and the failure; zero and nil if it may.
func (b *backoff) remaining(key types.NamespacedName) (time.Duration, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	e, ok := b.entries[key]
	if !ok {
		return 0, nil
	}
	if wait := e.until.Sub(b.clock.Now()); wait > 0 {
		return wait, e.err
	}
	return 0, nil
}

// latest returns the latest failure, also if the call may be repeated; nil if there is none.
func (b *backoff) latest(key types.NamespacedName) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if e, ok := b.entries[key]; ok {
		return e.err
	}
	return nil
}

// forget is called when a call has succeeded.
func (b *backoff) forget(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, key)
}

// end is called when the object no longer exists.
func (b *backoff) end(key types.NamespacedName) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.entries, key)
	delete(b.subjects, key)
}
