package limit

import (
	"math"
	"time"

	"millwright.dev/providers/driver"
)

const (
	// recovery is how long a rate takes from nothing to its limit. A halved one has recovered after half of it.
	recovery = 5 * time.Minute
	// decrease is what a throttle leaves of the rate.
	decrease = 0.5
	// leastShare of its limit is what throttles leave of a rate at the least.
	leastShare = 1.0 / 32
	// loadWindow is the time over which calls are counted that have no limit, and leastLoad what is assumed of them at the
	// least.
	loadWindow = 10 * time.Second
	leastLoad  = 1.0

	firstPause, lastPause = time.Second, time.Minute
	maxRetryAfter         = time.Hour

	// nearly makes up for rounding.
	nearly = 1e-6
)

// bucket has the tokens of one limit scope and kind, and those that wait for them. The Limiter's lock guards it. All but
// newBucket and advance expect that advance was called for the present.
type bucket struct {
	queue
	label string
	// limit is the configured rate per second; infinite without one.
	limit, burst float64

	now  time.Time // the latest time seen
	used time.Time // when it was last asked

	// tokens that are there at the time at, which is in the future while the bucket is closed: when it opens.
	tokens float64
	at     time.Time

	// A reduced rate was base at the time since, and rises to ceiling, with which the reduction ends. Without one, ceiling
	// is zero.
	base, ceiling float64
	since         time.Time

	// until is when the latest closure ends, or has ended. There were refusals in a row; refusal is the latest.
	until    time.Time
	refusals int
	refusal  error

	// load is the number of calls, each of which counts the less the longer ago it is, as of the time at.
	load float64

	delayed, closures int
	waited            time.Duration
}

func newBucket(rate driver.Rate, now time.Time) *bucket {
	b := &bucket{limit: math.Inf(1), burst: float64(max(rate.Burst, 1)), now: now, used: now, at: now}
	if rate.PerSecond > 0 {
		b.limit = rate.PerSecond
	}
	b.tokens = b.burst
	return b
}

// advance brings the bucket to the present.
func (b *bucket) advance(now time.Time) {
	if back := b.now.Sub(now); back > 0 {
		b.shift(-back)
	}
	b.now = now
	passed := now.Sub(b.at)
	if passed <= 0 {
		return
	}
	b.load *= math.Exp(-passed.Seconds() / loadWindow.Seconds())
	gained := b.gained(passed)
	b.at = now
	if b.ceiling > 0 && now.Sub(b.since) >= b.recoveryTime() {
		b.ceiling, b.refusals = 0, 0
	}
	b.tokens = min(b.tokens+gained, b.capacity())
}

// shift moves all times, such that a clock that was set back changes no duration.
func (b *bucket) shift(d time.Duration) {
	for _, t := range []*time.Time{&b.used, &b.at, &b.since, &b.until} {
		*t = t.Add(d)
	}
	for _, w := range b.waiting {
		w.since, w.due = w.since.Add(d), w.due.Add(d)
	}
}

// limited returns whether there is a limit now.
func (b *bucket) limited() bool { return b.ceiling > 0 || !math.IsInf(b.limit, 1) }

// slope is by how much a reduced rate rises in a second.
func (b *bucket) slope() float64 { return b.ceiling / recovery.Seconds() }

// recoveryTime is how long the reduction lasts.
func (b *bucket) recoveryTime() time.Duration { return seconds((b.ceiling - b.base) / b.slope()) }

// rate returns the rate at the time at.
func (b *bucket) rate() float64 {
	if b.ceiling == 0 {
		return b.limit
	}
	return min(b.base+b.slope()*b.at.Sub(b.since).Seconds(), b.ceiling)
}

// capacity returns how many tokens there are at most. With a reduced rate it is reduced as well.
func (b *bucket) capacity() float64 {
	if b.ceiling == 0 {
		return b.burst
	}
	return max(b.burst*b.rate()/b.ceiling, 1)
}

// rising returns for how long after the time at the rate rises.
func (b *bucket) rising() time.Duration {
	if b.ceiling == 0 {
		return 0
	}
	return max(b.recoveryTime()-b.at.Sub(b.since), 0)
}

// gained returns how many tokens come in the time after at.
func (b *bucket) gained(passed time.Duration) float64 {
	rising := min(b.rising(), passed)
	x := rising.Seconds()
	gained := b.slope() / 2 * x * x
	if x > 0 {
		gained += b.rate() * x
	}
	if passed > rising {
		gained += b.limit * (passed - rising).Seconds()
	}
	return gained
}

// delay returns how long after the time at as many tokens have come: the inverse of gained.
func (b *bucket) delay(tokens float64) time.Duration {
	if tokens <= nearly {
		return 0
	}
	rising := b.rising()
	if rising == 0 {
		return seconds(tokens / b.limit)
	}
	if whole := b.gained(rising); tokens > whole {
		return rising + seconds((tokens-whole)/b.limit)
	}
	rate, slope := b.rate(), b.slope()
	return seconds((math.Sqrt(rate*rate+2*slope*tokens) - rate) / slope)
}

// seconds returns a duration, rounded up, that can be added to times.
func seconds(s float64) time.Duration {
	return time.Duration(math.Ceil(min(s, 1e9) * float64(time.Second)))
}

// left returns how long the bucket is closed.
func (b *bucket) left(now time.Time) time.Duration { return max(b.until.Sub(now), 0) }

// ask returns zero and takes a token if it is the waiter's turn. Else it returns the time until then, and the waiter has a
// place in the queue.
func (b *bucket) ask(w *waiter, now time.Time) time.Duration {
	wait := b.delay(float64(b.ahead(w, now)+1)-b.tokens) + max(b.at.Sub(now), 0)
	if wait > 0 {
		if w.number == 0 {
			b.join(w, now)
			b.delayed++
		}
		w.due = now.Add(wait)
		return wait
	}
	if w.number != 0 {
		b.waited += now.Sub(w.since)
	}
	b.remove(w)
	b.load++
	b.tokens--
	return 0
}

// close closes the bucket after a call that began at that time was throttled.
func (b *bucket) close(now, began time.Time, throttle error, spread func(time.Duration) time.Duration) {
	after := min(driver.RetryAfterOf(throttle), maxRetryAfter)
	if began.Before(b.until) { // It belongs to the latest closure.
		if after > b.left(now) {
			b.refusal = throttle
			b.reopen(now.Add(after))
		}
		return
	}
	b.refusals++
	b.closures++
	b.refusal = throttle
	if after <= 0 {
		after = spread(pause(b.refusals))
	}
	rate := b.rate()
	if !b.limited() {
		rate = max(b.load/loadWindow.Seconds(), leastLoad)
	}
	if b.ceiling == 0 {
		b.ceiling = rate
	}
	b.base = max(rate*decrease, b.ceiling*leastShare)
	b.reopen(now.Add(after))
}

// reopen sets when the bucket opens: with one token, and a rate that rises from then on.
func (b *bucket) reopen(at time.Time) {
	b.until, b.since, b.at = at, at, at
	b.tokens = 1
	b.notify()
}

// pause returns for how long the n-th throttle in a row closes a bucket.
func pause(n int) time.Duration {
	d := firstPause
	for ; n > 1 && d < lastPause; n-- {
		d *= 2
	}
	return min(d, lastPause)
}

// admitted records that the cloud has admitted a call that began at that time.
func (b *bucket) admitted(began time.Time) {
	if !began.Before(b.until) {
		b.refusals = 0
	}
}

// unused returns whether the bucket is like a new one.
func (b *bucket) unused() bool {
	return len(b.waiting) == 0 && b.ceiling == 0 && b.tokens >= b.burst-nearly
}
