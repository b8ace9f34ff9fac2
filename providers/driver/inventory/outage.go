package inventory

import (
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// DefaultUnreachableAfter is for how long the lists of a scope have to fail before that is an outage.
const DefaultUnreachableAfter = 5 * time.Minute

// wakePause is the time between two machines of a scope that are woken because an outage has begun or ended. Each of them costs a
// write, and there may be thousands.
const wakePause = 100 * time.Millisecond

// Outage means that a scope, or a failure domain of it, could not be listed for so long that what is known of its instances may be
// out of date.
type Outage struct {
	// LastListed is when the latest successful list began; zero if there was none in this process.
	LastListed time.Time
	// Since is LastListed, or when this process began to list the scope if that was later.
	Since time.Time
	// Err is why lists fail. It is that of the first list after which there was an outage, so that a message with it stays as it
	// is; an error of another class replaces it, once in each Options.UnreachableAfter.
	Err error

	stated   time.Time
	reported atomic.Bool
}

// FirstReport is true for the first caller: one event is enough for all machines of a scope.
func (o *Outage) FirstReport() bool { return o.reported.CompareAndSwap(false, true) }

// unreachableAfter is never so short that the failure of one list is an outage.
func (o Options) unreachableAfter() time.Duration {
	after := o.UnreachableAfter
	if after == 0 {
		after = DefaultUnreachableAfter
	}
	return max(after, 3*o.Slow)
}

// review begins, corrects or ends the outage after a list. s.mu is held.
func (s *scope) review(r *reading) {
	if r.err == nil {
		r.outage = nil
		return
	}
	now, after := s.opts.Clock.Now(), s.opts.unreachableAfter()
	switch {
	case now.Sub(s.missingSince(r)) < after:
		return
	case r.outage == nil:
	case driver.ClassOf(r.outage.Err) == driver.ClassOf(r.err) || now.Sub(r.outage.stated) < after:
		return
	}
	r.outage = &Outage{LastListed: r.listedAt, Since: s.missingSince(r), Err: r.err, stated: now}
}

// missingSince is since when a list is missing. s.mu is held.
func (s *scope) missingSince(r *reading) time.Time {
	if r.listedAt.After(s.activeSince) {
		return r.listedAt
	}
	return s.activeSince
}

// activate notes that a machine is tracked again where none was. s.mu is held.
func (s *scope) activate(now time.Time) {
	if len(s.tracked) == 0 {
		s.activeSince, s.outage = now, nil
		for _, gap := range s.gaps {
			gap.outage = nil
		}
	}
}

// wakeSlowly wakes machines one after the other.
func (s *scope) wakeSlowly(keys []types.NamespacedName) {
	for n, key := range keys {
		s.wake.EnqueueAfter(key, time.Duration(n)*wakePause)
	}
}
