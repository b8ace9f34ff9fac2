package drain

import (
	"math/rand/v2"
	"time"
)

// attempt is what is known of one request that is repeated until it succeeds.
type attempt struct {
	// inFlight means that the request waits for its turn or for its answer.
	inFlight bool
	// ok means that the last answer was success.
	ok bool
	// gone means that the object of the request does not exist any more, whatever the watch still shows.
	gone bool
	// failures counts the answers that were refusals or errors since the last success.
	failures int
	// retryAt is when the request may be sent again.
	retryAt time.Time
	// budget and reason are why it was refused.
	budget, reason string
	// several means that there is more than one budget.
	several bool
}

// due reports whether the request may be sent.
func (a *attempt) due(now time.Time) bool {
	return !a.inFlight && !now.Add(retrySlack).Before(a.retryAt)
}

// refused records an answer other than success and sets the time of the next attempt: the delay doubles from
// lowest to highest and is lengthened at random by up to a tenth; a delay that the server asked for is a floor.
func (a *attempt) refused(now time.Time, answer outcome, lowest, highest time.Duration) {
	a.inFlight, a.ok = false, false
	delay := highest
	if a.failures < 8 {
		delay = min(lowest<<a.failures, highest)
	}
	a.failures++
	a.budget, a.reason, a.several = answer.budget, answer.reason, answer.several
	delay += time.Duration(rand.Int64N(int64(delay/10) + 1))
	a.retryAt = now.Add(max(delay, answer.retryAfter))
}

// granted records success.
func (a *attempt) granted(now time.Time) {
	*a = attempt{ok: true, retryAt: now.Add(grantedTimeout)}
}
