package limit

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

func TestAdmit(t *testing.T) {
	r := newRig(t, one(2, 2))
	r.Expect(r.admit("a")).To(BeZero())
	r.Expect(r.admit("b")).To(BeZero())
	r.Expect(r.admit("c")).To(Equal(500 * time.Millisecond))
	r.Expect(r.admit("d")).To(Equal(time.Second), "in order")
	r.Expect(r.admit("d")).To(Equal(time.Second), "asking again costs nothing")
	r.Expect(r.Admit("other", create, key("e"))).To(BeZero(), "each limit scope has its own limit")
	r.Expect(r.Admit("r", read, key("c"))).To(BeZero(), "and each kind")

	r.passes(500 * time.Millisecond)
	r.Expect(r.admit("d")).To(Equal(500*time.Millisecond), "the place is kept, and the token is c's")
	r.Expect(r.admit("c")).To(BeZero())
	r.Expect(r.admit("d")).To(Equal(500 * time.Millisecond))
	r.Expect(r.admit("c")).To(Equal(time.Second), "a place is used up")

	r.Forget(key("d"))
	r.Expect(r.admit("c")).To(Equal(500*time.Millisecond), "those behind move up")
	r.passes(time.Hour)
	r.Expect(r.admit("d")).To(BeZero())
	r.Forget(key("c"))
	r.Expect(r.admit("c")).To(BeZero(), "and no more than the burst is saved up")
	r.Expect(r.admit("e")).To(Equal(500 * time.Millisecond))
}

// An object that makes no call after all delays nothing, and gives no right to more calls than the limit.
func TestATokenThatIsGivenBack(t *testing.T) {
	r := newRig(t, one(1, 2))
	r.GiveBack("r", create)
	r.Expect(r.admit("a")).To(BeZero())
	r.Expect(r.admit("b")).To(BeZero())
	r.Expect(r.admit("c")).To(Equal(time.Second))
	r.GiveBack("r", create)
	r.Expect(r.admit("c")).To(BeZero())
	r.passes(time.Hour)
	r.Expect(r.admit("a")).To(BeZero())
	r.GiveBack("r", create)
	r.GiveBack("r", create)
	r.Expect(r.admit("a")).To(BeZero())
	r.Expect(r.admit("b")).To(BeZero())
	r.Expect(r.admit("c")).To(Equal(time.Second), "no more than the burst")
}

func TestRatesThatAreNoLimit(t *testing.T) {
	for _, rate := range []driver.Rate{{}, {Burst: 3}, {PerSecond: -1, Burst: 1}} {
		r := newRig(t, map[driver.CallKind]driver.Rate{create: rate})
		for i := range 1000 {
			r.Expect(r.Admit("r", create, numbered(i))).To(BeZero())
		}
	}
	r := newRig(t, one(1, 0))
	r.Expect(r.admit("a")).To(BeZero(), "a burst is one at the least")
	r.Expect(r.admit("b")).To(Equal(time.Second))
}

func TestTheRatesAreTheLimitersOwn(t *testing.T) {
	rates := one(1, 1)
	r := newRig(t, rates)
	delete(rates, create)
	r.Expect(r.admit("a")).To(BeZero())
	r.Expect(r.admit("b")).NotTo(BeZero())
}

// An object has one place for each kind, wherever it is.
func TestAnObjectThatMovesToAnotherLimitScope(t *testing.T) {
	r := newRig(t, one(1, 1))
	r.admit("a")
	r.Admit("s", create, key("a"))
	r.Expect(r.admit("b")).To(Equal(time.Second))
	r.Expect(r.Admit("s", create, key("b"))).To(Equal(time.Second))
	r.Expect(r.admit("c")).To(Equal(time.Second), "the place of b is free")
	r.passes(time.Second)
	r.Expect(r.Admit("s", create, key("b"))).To(BeZero())
	r.Forget(key("c"))
	r.Expect(r.places).To(BeEmpty())
	r.Expect(r.pair().waiting).To(BeEmpty())
}

// The machines ahead may be deleted meanwhile, so no machine is turned away for hours.
func TestLongWaitsAreShortened(t *testing.T) {
	r := newRig(t, one(1, 1))
	for i := range 62 {
		r.Admit("r", create, numbered(i))
	}
	r.Expect(r.Admit("r", create, numbered(60))).To(roughly(time.Minute))
	r.Expect(r.Admit("r", create, numbered(61))).To(roughly(time.Minute + time.Second/8))
	r.Report("r", create, throttle(10*time.Minute))
	r.Expect(r.Admit("r", create, numbered(1))).To(roughly(10*time.Minute), "closures are not")
	for i := range 61 {
		r.Forget(numbered(i))
	}
	r.Expect(r.Admit("r", create, numbered(61))).To(roughly(10 * time.Minute))
}

// A worker may be busy when an object's turn comes.
func TestATokenIsHeldForAWhile(t *testing.T) {
	r := newRig(t, one(1, 1))
	for _, name := range []string{"first", "late", "next"} {
		r.admit(name)
	}
	r.passes(time.Second + holdToken) // the turn of late was 5 seconds ago
	r.Expect(r.admit("next")).To(Equal(time.Second), "the token is held")
	r.passes(time.Nanosecond)
	r.Expect(r.admit("next")).To(BeZero())
	r.Expect(r.admit("other")).To(Equal(time.Second))
	r.Expect(r.admit("late")).To(Equal(time.Second), "it is still the first")
	r.Expect(r.admit("other")).To(Equal(2 * time.Second))
}

func TestAPlaceIsKeptForAWhile(t *testing.T) {
	r := newRig(t, one(1, 1))
	for _, name := range []string{"first", "gone"} {
		r.admit(name)
	}
	r.passes(time.Second + keepPlace)
	r.Admit("s", read, key("somebody"))
	r.Expect(r.places).To(HaveKey(key("gone")))
	r.passes(sweepEvery)
	r.Admit("s", read, key("somebody"))
	r.Expect(r.places).To(BeEmpty())
	r.Expect(r.pair().waiting).To(BeEmpty())
}

// Objects that vanish without Forget delay the others by 5 seconds in all, and not each.
func TestManyThatNeverComeBack(t *testing.T) {
	r := newRig(t, one(2, 2))
	for i := range 102 {
		r.Admit("r", create, numbered(i))
	}
	began := r.fake.Now()
	for wait := r.admit("live"); wait > 0; wait = r.admit("live") {
		r.passes(wait)
	}
	r.Expect(r.fake.Since(began)).To(BeNumerically("<=", 101*time.Second/2+holdToken+time.Second))
}

func TestIdlePairsAreDropped(t *testing.T) {
	r := newRig(t, map[driver.CallKind]driver.Rate{create: {PerSecond: 1, Burst: 5}, read: {PerSecond: 1e-4, Burst: 2}})
	r.Admit("idle", create, key("a"))
	r.Admit("throttled", create, key("a"))
	r.Admit("empty", read, key("a"))
	r.Admit("empty", read, key("b"))
	r.passes(idleAfter - time.Minute)
	r.Report("throttled", create, throttle(0))
	r.passes(time.Minute)
	r.Admit("used", create, key("a"))
	r.Expect(r.buckets).NotTo(HaveKey(pair{"idle", create}))
	r.Expect(r.labels).To(Equal(map[string]int{"throttled": 1, "empty": 1, "used": 1}))
	r.passes(idleAfter)
	r.Admit("used", create, key("a"))
	r.Expect(r.labels).To(Equal(map[string]int{"empty": 1, "used": 1}), "a new bucket would admit a burst")
	r.passes(5 * time.Hour)
	r.Admit("used", create, key("a"))
	r.Expect(r.labels).To(Equal(map[string]int{"used": 1}))
	r.Expect(r.buckets).To(HaveLen(1))
}

func TestWhatMayBeDropped(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*rig)
		want   bool
	}{
		"nothing left to know": {func(*rig) {}, true},
		"another one waits":    {func(r *rig) { r.pair().join(&waiter{}, r.fake.Now()) }, false},
		"tokens are missing":   {func(r *rig) { r.admit("b") }, false},
		"closed for long":      {func(r *rig) { r.Report("r", create, throttle(time.Hour)); r.passes(time.Hour + time.Minute) }, false},
	} {
		r := newRig(t, one(1, 3))
		r.admit("a")
		r.passes(time.Second)
		c.change(r)
		r.Expect(r.pair().unused()).To(Equal(c.want), name)
	}
	r := newRig(t, one(1, 1))
	r.Report("r", create, throttle(time.Second))
	r.passes(time.Second)
	r.Expect(r.pair().tokens).To(Equal(1.0))
	r.Expect(r.pair().unused()).To(BeFalse(), "the rate is reduced, also where a burst of one cannot be")
}

// All waits stay as long as they were.
func TestAClockThatIsSetBack(t *testing.T) {
	r := newRig(t, one(1, 1))
	for _, name := range []string{"a", "b", "gone", "c"} {
		r.admit(name)
	}
	r.passes(time.Second / 2)
	r.admit("c")
	r.passes(-time.Hour)
	r.Expect(r.admit("b")).To(roughly(500 * time.Millisecond))
	r.passes(500 * time.Millisecond)
	r.Expect(r.admit("b")).To(BeZero())
	r.passes(-time.Hour)
	r.Expect(r.admit("c")).To(roughly(2 * time.Second))
	r.passes(time.Second + holdToken - time.Microsecond)
	r.Expect(r.admit("c")).To(roughly(time.Second), "a token is held for gone")
	r.passes(2 * time.Microsecond)
	r.Expect(r.admit("c")).To(BeZero(), "but no longer than before")

	r.Report("r", create, throttle(time.Minute))
	r.passes(-24 * time.Hour)
	r.Expect(r.left()).To(Equal(time.Minute))
	r.Expect(r.admit("d")).To(roughly(time.Minute))
	r.passes(time.Minute + 2*time.Microsecond)
	r.Expect(r.admit("gone")).To(BeZero(), "it is the first")
	r.Forget(key("d"))
	r.passes(-24 * time.Hour)
	r.Admit("r", read, key("x"))
	r.passes(idleAfter)
	r.Admit("r", read, key("x"))
	r.Expect(r.buckets).NotTo(HaveKey(pair{"r", create}))
}
