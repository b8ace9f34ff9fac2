package instance

import (
	"cmp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/utils/clock"

	"millwright.dev/providers/driver"
)

// shortageTTL is how long a place that lacked capacity is passed over if there is another one.
const shortageTTL = 3 * time.Minute

// offering is what capacity is scarce of: an instance type, on spot or on demand, in a zone; or the addresses of a subnet. The
// subnet is empty where the whole zone is meant.
type offering struct {
	instanceType string
	spot         bool
	zone, subnet string
}

// wholeZone is the offering in all subnets of its zone.
func (o offering) wholeZone() offering {
	o.subnet = ""
	return o
}

// addressCodes mean that a subnet lacks addresses; all other shortages are of the zone.
var addressCodes = []string{"InsufficientFreeAddressesInSubnet", "InsufficientAddressCapacity"}

// shortages remembers which offerings lacked capacity, for all machines of the process.
type shortages struct {
	clock clock.PassiveClock

	mu    sync.Mutex
	since map[offering]time.Time
}

func newShortages(clk clock.PassiveClock) *shortages {
	return &shortages{clock: clk, since: map[offering]time.Time{}}
}

// report notes that a launch was refused for lack of capacity.
func (s *shortages) report(o offering, err error) {
	code, _ := codeOf(err)
	if !slices.Contains(addressCodes, code) {
		o = o.wholeZone()
	}
	s.saw(o, s.clock.Now())
}

// saw notes that the offering lacked capacity at that time.
func (s *shortages) saw(o offering, when time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	if when.After(now) { // The clocks differ.
		when = now
	}
	if when.After(s.since[o]) && now.Sub(when) < shortageTTL {
		s.since[o] = when
	}
}

// explain adds to the cloud's answer what was asked for: the instance type, and all zones that lacked it lately, in a stable
// order, since the message ends in a condition.
func (s *shortages) explain(err error, of offering) error {
	var answer *driver.Error
	if !errors.As(err, &answer) {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var tried []string
	for o, when := range s.since {
		if o.instanceType == of.instanceType && o.spot == of.spot && s.clock.Since(when) < shortageTTL {
			tried = append(tried, cmp.Or(o.zone, o.subnet))
		}
	}
	slices.Sort(tried)
	market := "on demand"
	if of.spot {
		market = "on spot"
	}
	explained := *answer
	explained.Err = errors.Wrapf(answer.Err, "%s %s in %s", of.instanceType, market, strings.Join(slices.Compact(tried), ", "))
	return &explained
}

// at returns when the offering last lacked capacity, there or in the whole zone; zero if not lately.
func (s *shortages) at(o offering) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	var latest time.Time
	for _, of := range []offering{o, o.wholeZone()} {
		when, ok := s.since[of]
		if ok && s.clock.Since(when) >= shortageTTL {
			delete(s.since, of)
			continue
		}
		if when.After(latest) {
			latest = when
		}
	}
	return latest
}
