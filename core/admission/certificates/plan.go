package certificates

import (
	"bytes"
	"time"

	"github.com/pkg/errors"
)

// Lifetimes are how long certificates last. A certificate is renewed when a third of its life is left.
type Lifetimes struct {
	// Authority is the life of a certificate authority.
	Authority time.Duration
	// Serving is the life of a serving certificate.
	Serving time.Duration
	// Settle is how long a new authority is trusted before what it signed is served: API servers learn of it
	// within that time.
	Settle time.Duration
}

// DefaultLifetimes are used where no others are set.
var DefaultLifetimes = Lifetimes{Authority: 365 * 24 * time.Hour, Serving: 30 * 24 * time.Hour, Settle: 5 * time.Minute}

// step is what is to be done with the content next.
type step string

const (
	// begin makes everything new: there is no authority that can sign.
	begin step = "begin"
	// addNext issues the next authority, to be trusted beside the present one.
	addNext step = "add next"
	// promote signs with the next authority from now on.
	promote step = "promote"
	// renew creates a new serving certificate of the same authority.
	renew step = "renew"
	// trim removes former authorities that have expired from the trusted ones.
	trim step = "trim"
	// rest does nothing.
	rest step = ""
)

// plan returns what is to be done, and when to plan again if nothing is. Settled is whether the trusted authorities have
// been with the API servers for long enough.
func (i issuer) plan(c content, life Lifetimes, settled bool, now time.Time) (step, time.Time) {
	nextValid := i.validAuthority(c.next, now)
	switch {
	case !i.validAuthority(c.authority, now) && nextValid:
		// It expired while no core ran. What follows it is trusted already, or will be as soon as a new one.
		return promote, time.Time{}
	case !i.validAuthority(c.authority, now):
		return begin, time.Time{}
	case !i.validServing(c.serving, c.authority, now):
		return renew, time.Time{}
	case nextValid && settled:
		return promote, time.Time{}
	case !nextValid && !now.Before(renewal(c.authority, life.Authority)):
		return addNext, time.Time{}
	case !now.Before(renewal(c.serving, life.Serving)) && !lastsAsLong(c.serving, c.authority):
		return renew, time.Time{}
	case !bytes.Equal(c.trust(now).trusted, c.trusted):
		return trim, time.Time{}
	}
	ask := renewal(c.serving, life.Serving)
	// A serving certificate that ends with its authority is followed by one of the next authority.
	if due := renewal(c.authority, life.Authority); !nextValid && (due.Before(ask) || lastsAsLong(c.serving, c.authority)) {
		ask = due
	}
	return rest, ask
}

// take takes a step.
func (i issuer) take(s step, c content, life Lifetimes, now time.Time) (content, error) {
	var err error
	switch s {
	case begin:
		c.next = pair{}
		if c.authority, err = i.newAuthority(now, life.Authority); err == nil {
			c.serving, err = i.newServing(c.authority, now, life.Serving)
		}
	case addNext:
		c.next, err = i.newAuthority(now, life.Authority)
	case promote:
		c.authority, c.next = c.next, pair{}
		c.serving, err = i.newServing(c.authority, now, life.Serving)
	case renew:
		c.serving, err = i.newServing(c.authority, now, life.Serving)
	case trim, rest:
	default:
		err = errors.Errorf("there is no step %q", s)
	}
	return c.trust(now), err
}

// renewal is when a certificate of the given life is to be replaced: two thirds after its beginning.
func renewal(p pair, life time.Duration) time.Time {
	certificate, err := parse(p)
	if err != nil {
		return time.Time{}
	}
	return certificate.NotAfter.Add(-life / 3)
}

// lastsAsLong reports whether a serving certificate ends with its authority, so that a new one would last no longer.
func lastsAsLong(serving, authority pair) bool {
	one, err := parse(serving)
	if err != nil {
		return false
	}
	other, err := parse(authority)
	return err == nil && !one.NotAfter.Before(other.NotAfter)
}
