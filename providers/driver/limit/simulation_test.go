package limit

import (
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
)

// object asks for a turn whenever it was asked to, up to some time later.
type object struct {
	key   types.NamespacedName
	next  time.Time
	first time.Time // when it began to wait; zero if it does not
	// ahead is how many waited when it began to, and passed how many had their turn since.
	ahead, passed int
}

// simulation is many objects that ask for CallCreate again and again. It goes from one time when an object asks to the next.
type simulation struct {
	*rig
	random  *rand.Rand
	objects []*object
	// late is how much later an object asks at the most, and rest how long it wants nothing after its turn.
	late, rest time.Duration
	turns      []time.Time
	longest    int // the most turns that an object has waited more than there were ahead of it
	// cloud is called for each turn.
	cloud func()
}

func newSimulation(t *testing.T, seed uint64, rate driver.Rate, objects int) *simulation {
	s := &simulation{
		rig:    newRig(t, map[driver.CallKind]driver.Rate{create: rate}),
		random: rand.New(rand.NewPCG(seed, 0)), cloud: func() {},
	}
	s.Limiter.spread = func(d time.Duration) time.Duration { return d + time.Duration(s.random.Int64N(int64(d/5))) }
	for i := range objects {
		s.objects = append(s.objects, &object{key: numbered(i), next: s.fake.Now().Add(s.upTo(s.late))})
	}
	return s
}

func (s *simulation) upTo(d time.Duration) time.Duration {
	return time.Duration(s.random.Int64N(int64(d) + 1))
}

func (s *simulation) run(d time.Duration) {
	for end := s.fake.Now().Add(d); ; {
		next := s.objects[0]
		for _, o := range s.objects {
			if o.next.Before(next.next) {
				next = o
			}
		}
		if next.next.After(end) {
			return
		}
		s.fake.SetTime(next.next)
		s.asks(next)
	}
}

func (s *simulation) asks(o *object) {
	now := s.fake.Now()
	wait := s.Admit("r", create, o.key)
	if wait > 0 {
		if o.first.IsZero() {
			o.first, o.ahead, o.passed = now, len(s.pair().waiting)-1, 0
		}
		o.next = now.Add(wait + s.upTo(s.late))
		return
	}
	if !o.first.IsZero() {
		s.longest = max(s.longest, o.passed-o.ahead)
	}
	for _, other := range s.objects {
		other.passed++
	}
	o.first, o.next = time.Time{}, now.Add(s.upTo(s.rest))
	s.turns = append(s.turns, now)
	s.cloud()
}

// expectWithin checks that in no time there were more turns than the rate allows.
func (s *simulation) expectWithin(rate driver.Rate) {
	tokens, before := float64(rate.Burst), time.Time{}
	for _, at := range s.turns {
		tokens = min(tokens+rate.PerSecond*at.Sub(before).Seconds(), float64(rate.Burst)) - 1
		if before = at; tokens < -1e-3 {
			s.Expect(tokens).To(BeNumerically(">=", 0), "at %v", at)
		}
	}
}

// A caller that comes in time has its turn in order, and there are never more than the rate allows, nor much less.
func TestTurnsAreInOrderAndWithinTheRate(t *testing.T) {
	for seed := range uint64(30) {
		random := rand.New(rand.NewPCG(seed, 1))
		rate := driver.Rate{PerSecond: 0.5 + 10*random.Float64(), Burst: 1 + random.IntN(10)}
		s := newSimulation(t, seed, rate, 1+random.IntN(60))
		s.rest = time.Duration(random.IntN(20)) * time.Second
		s.run(5 * time.Minute)
		s.expectWithin(rate)
		s.Expect(s.longest).To(BeNumerically("<=", 0), "seed %d: none behind goes first", seed)
		if s.rest == 0 {
			s.Expect(len(s.turns)).To(BeNumerically(">=", int(rate.PerSecond*299)), "no turn is lost")
		}
	}
}

// Objects that come late may be passed, but by no more than one turn for each of the others; the rate is used nevertheless.
func TestNothingStarves(t *testing.T) {
	for seed := range uint64(8) {
		random := rand.New(rand.NewPCG(seed, 2))
		rate := driver.Rate{PerSecond: 0.5 + 5*random.Float64(), Burst: 5}
		s := newSimulation(t, seed, rate, 2+random.IntN(60))
		s.late = time.Duration(random.IntN(15000)) * time.Millisecond
		s.run(20 * time.Minute)
		s.expectWithin(rate)
		for _, o := range s.objects {
			s.Expect(s.fake.Since(o.first)).To(Or(
				BeNumerically("<", time.Duration(float64(4*len(s.objects))/rate.PerSecond*float64(time.Second))+4*s.late+time.Minute),
				BeNumerically(">", 1000*time.Hour)), "seed %d: none waits forever", seed)
		}
		most := min(rate.PerSecond, float64(len(s.objects))/(s.late.Seconds()+1))
		s.Expect(float64(len(s.turns))/1200).To(BeNumerically(">", most/3), "seed %d: %v late, %d objects", seed, s.late, len(s.objects))
	}
}

// counted is a cloud that admits calls by a token bucket of its own.
type counted struct {
	rate          driver.Rate
	tokens        float64
	at            time.Time
	made, refused int
	retryAfter    time.Duration
}

func (c *counted) call(now time.Time) error {
	c.tokens = min(c.tokens+c.rate.PerSecond*now.Sub(c.at).Seconds(), float64(c.rate.Burst))
	c.at = now
	if c.tokens < 1 {
		c.refused++
		return throttle(c.retryAfter)
	}
	c.tokens--
	c.made++
	return nil
}

// A cloud that admits a third of what is configured, with or without RetryAfter, is soon asked little more than it admits.
func TestALimitThatIsThreeTimesTooHighSettles(t *testing.T) {
	for _, retryAfter := range []time.Duration{0, 5 * time.Second} {
		for seed := range uint64(2) {
			s := newSimulation(t, seed, driver.Rate{PerSecond: 6, Burst: 30}, 100)
			s.late = 50 * time.Millisecond
			cloud := &counted{rate: driver.Rate{PerSecond: 2, Burst: 5}, tokens: 5, at: s.fake.Now(), retryAfter: retryAfter}
			s.cloud = func() {
				if _, err := s.refuse(pair{"r", create}); err == nil {
					s.Report("r", create, cloud.call(s.fake.Now()))
				}
			}
			s.run(5 * time.Minute)
			cloud.made, cloud.refused = 0, 0
			s.run(30 * time.Minute)
			made, refused := float64(cloud.made)/1800, float64(cloud.refused)/30
			t.Logf("RetryAfter %v, seed %d: %.2f of 2 per second, %.1f throttles per minute", retryAfter, seed, made, refused)
			s.Expect(made).To(BeNumerically(">", 0.8*2))
			s.Expect(refused).To(BeNumerically("<", 1.2))
		}
	}
}

// A cloud that throttles everything for five minutes gets few calls, and soon all again afterwards.
func TestThrottledForFiveMinutes(t *testing.T) {
	s := newSimulation(t, 1, driver.Rate{PerSecond: 10, Burst: 10}, 100)
	ends := s.fake.Now().Add(5 * time.Minute)
	calls := 0
	s.cloud = func() {
		if _, err := s.refuse(pair{"r", create}); err != nil {
			return
		}
		calls++
		if s.fake.Now().Before(ends) {
			s.Report("r", create, throttle(0))
		} else {
			s.Report("r", create, nil)
		}
	}
	s.run(5 * time.Minute)
	s.Expect(calls).To(BeNumerically("<=", 11), "1, 2, 4 ... 60 seconds apart")
	s.run(6 * time.Minute)
	calls = 0
	s.run(time.Minute)
	s.Expect(calls).To(BeNumerically("~", 600, 10), "recovered")
}
