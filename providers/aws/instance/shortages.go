package instance

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// shortageTTL is how long a place that lacked capacity is passed over if there is another one.
const shortageTTL = 3 * time.Minute

// offering is what capacity is scarce of: an instance type, on spot or on demand, in a subnet (whose
// zone may be out of the type, and which itself may be out of addresses).
type offering struct {
	instanceType string
	spot         bool
	subnet       string
}

// shortages remembers which offerings lacked capacity, for all machines of the process.
type shortages struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	since map[offering]time.Time
}

func newShortages(clk clock.PassiveClock) *shortages {
	return &shortages{clock: clk, since: map[offering]time.Time{}}
}

func (s *shortages) report(o offering) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.since[o] = s.clock.Now()
}

// at returns when the offering last lacked capacity; zero if not lately.
func (s *shortages) at(o offering) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	when, ok := s.since[o]
	if ok && s.clock.Since(when) >= shortageTTL {
		delete(s.since, o)
		return time.Time{}
	}
	return when
}
