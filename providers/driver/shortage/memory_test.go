package shortage

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
)

var asked = candidate("m5", "a1", "spot")

func TestWhatIsShort(t *testing.T) {
	cause := errors.New("x")
	others := []driver.Candidate{
		asked, candidate("m5", "a2", "spot"), candidate("m5", "a1", ""), candidate("c5", "a1", "spot"), candidate("m5", "b1", "spot"),
	}
	for name, c := range map[string]struct {
		err  error
		want []bool
	}{
		"capacity":                   {lacking(false), []bool{true, true, false, false, false}},
		"capacity of the place only": {lacking(true), []bool{true, false, true, true, false}},
		"success":                    {nil, []bool{false, false, false, false, false}},
		"quota":                      {driver.NewQuotaError("", "", cause), []bool{true, true, false, false, true}},
		"quota of the place":         {&driver.Error{Class: driver.ClassQuota, OnlyPlace: true}, []bool{true, false, true, true, false}},
		"quota of all types":         {&driver.Error{Class: driver.ClassQuota, AllTypes: true}, []bool{false, false, false, false, false}},
		"no class":                   {cause, []bool{false, false, false, false, false}},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Report("r", asked, c.err)
			for i, of := range others {
				r.Expect(r.short(of)).To(Equal(c.want[i]), "%+v", of)
			}
			for _, of := range r.Mark("elsewhere", others) {
				r.Expect(of.ShortSince).To(BeZero(), "each limit scope has its own")
			}
		})
	}
}

// Subnets of equal names in two zones are two places.
func TestAPlaceIsWithinItsFailureDomain(t *testing.T) {
	r := newRig(t)
	r.Report("r", asked, lacking(true))
	other := asked
	other.FailureDomain = "b"
	r.Expect(r.short(other)).To(BeFalse())
}

// Who pays too little takes no capacity from who pays more, and is not helped by another subnet of the zone.
func TestAShortageOfTermsIsOfThese(t *testing.T) {
	r := newRig(t)
	low, high, elsewhere := asked, asked, candidate("m5", "a2", "spot")
	low.Terms, high.Terms, elsewhere.Terms = "for 1 at most", "for 2 at most", "for 1 at most"
	tooLow := &driver.Error{Class: driver.ClassCapacity, OnlyTerms: true}
	r.Report("r", low, tooLow)
	r.Expect(r.short(low)).To(BeTrue())
	r.Expect(r.short(elsewhere)).To(BeTrue())
	r.Expect(r.short(high)).To(BeFalse())
	r.Expect(r.short(asked)).To(BeFalse())
	r.Expect(r.Explain("r", low, tooLow)).To(MatchError(ContainSubstring("m5 spot for 1 at most in a")))
	r.Expect(r.Explain("r", high, lacking(false))).To(MatchError(ContainSubstring("m5 spot for 2 at most in a: no room")))
	high.FailureDomain, high.ID = "b", "subnet-b1"
	r.Expect(r.Explain("r", high, lacking(false))).
		To(MatchError(ContainSubstring("m5 spot for 2 at most in b: no room")), "others pay less in a")
	low.FailureDomain = "b"
	r.Expect(r.Explain("r", low, tooLow)).To(MatchError(ContainSubstring("m5 spot for 1 at most in a, b")), "the same terms")
	low.FailureDomain, high.FailureDomain, high.ID = "a", "a", low.ID
	r.Report("r", high, lacking(false))
	r.Expect(r.short(low)).To(BeTrue())
	r.Expect(r.short(asked)).To(BeTrue(), "there is none for whatever price")
	r.Report("r", candidate("m5", "c1", "spot"), lacking(false))
	r.Expect(r.Explain("r", low, tooLow)).To(MatchError(ContainSubstring("m5 spot for 1 at most in a, c")), "whatever one pays there")
}

func TestShortagesAreForgotten(t *testing.T) {
	for ttl, want := range map[time.Duration]time.Duration{0: DefaultTTL, -1: DefaultTTL, time.Second: time.Second} {
		r := newRig(t)
		r.Memory = New(r.fake, ttl)
		r.Report("r", asked, lacking(false))
		r.Report("r", asked, lacking(true))
		r.passes(want - 1)
		r.Expect(r.short(asked)).To(BeTrue())
		r.passes(1)
		r.Expect(r.short(asked)).To(BeFalse())
		r.Expect(r.since).To(BeEmpty())
	}
}

func TestTheLatestCounts(t *testing.T) {
	r := newRig(t)
	r.Report("r", asked, lacking(true))
	r.passes(time.Second)
	r.Report("r", asked, lacking(false))
	r.passes(time.Second)
	r.Expect(r.at(asked)).To(Equal(time.Second), "of the place and of the domain")
	r.Report("r", asked, lacking(true))
	r.Expect(r.at(asked)).To(Equal(time.Duration(0)))
	r.Saw("r", asked, r.fake.Now().Add(-time.Minute))
	r.Expect(r.at(candidate("m5", "a2", "spot"))).To(Equal(time.Second), "what is older changes nothing")
	r.Saw("r", asked, r.fake.Now().Add(-time.Nanosecond))
	r.Expect(r.at(candidate("m5", "a2", "spot"))).To(Equal(time.Nanosecond))
}

func TestMarkChangesNothingElse(t *testing.T) {
	r := newRig(t)
	r.Report("r", asked, lacking(false))
	old := asked
	old.ShortSince, old.Rank = r.fake.Now().Add(time.Hour), 3
	free := candidate("m5", "b1", "spot")
	free.ShortSince = r.fake.Now()
	given := []driver.Candidate{free, old}
	marked := r.Mark("r", given)
	r.Expect(given).To(Equal([]driver.Candidate{free, old}), "the driver may have kept them")
	free.ShortSince, old.ShortSince = time.Time{}, r.fake.Now()
	r.Expect(marked).To(Equal([]driver.Candidate{free, old}))
	r.Expect(r.Mark("r", nil)).To(BeEmpty())
}

func TestExplain(t *testing.T) {
	r := newRig(t)
	for _, c := range []driver.Candidate{
		candidate("m5", "c1", "spot"), asked, candidate("m5", "a2", "spot"), candidate("m5", "d1", ""), candidate("c5", "e1", "spot"),
	} {
		r.Report("r", c, lacking(false))
	}
	r.Report("r", candidate("m5", "f1", "spot"), lacking(true))
	r.Report("elsewhere", candidate("m5", "g1", "spot"), lacking(false))
	b := candidate("m5", "b1", "spot")
	for range 20 {
		r.Expect(r.Explain("r", asked, lacking(false))).To(MatchError("Run: None: m5 spot in a, c: no room"), "always in this order")
	}
	r.Expect(r.Explain("r", b, lacking(false))).To(MatchError("Run: None: m5 spot in a, b, c: no room"), "its own as well")
	r.Expect(r.Explain("r", b, lacking(true))).To(MatchError("Run: None: m5 spot in a, c, subnet-b1 (b): no room"))
	r.Expect(r.Explain("r", candidate("m5", "d1", ""), lacking(false))).To(MatchError("Run: None: m5 in d: no room"))
	r.passes(DefaultTTL)
	r.Expect(r.Explain("r", b, lacking(false))).To(MatchError("Run: None: m5 spot in b: no room"))
	b.FailureDomain = ""
	r.Expect(r.Explain("r", b, lacking(true))).To(MatchError("Run: None: m5 spot in subnet-b1: no room"))

	r.Report("r", candidate("", "h1", ""), lacking(true))
	r.Expect(r.Explain("r", candidate("", "i1", ""), lacking(false))).
		To(MatchError("Run: None:  in i: no room"), "a place is no failure domain, without types either")

	given := &driver.Error{Class: driver.ClassCapacity, RetryAfter: time.Second, OnlyPlace: true}
	var explained *driver.Error
	r.Expect(errors.As(r.Explain("r", asked, given), &explained)).To(BeTrue())
	r.Expect(explained).To(MatchError("m5 spot in subnet-a1 (a)"))
	r.Expect(explained.RetryAfter).To(Equal(time.Second))
	r.Expect(explained.OnlyPlace).To(BeTrue())
	r.Expect(given.Err).NotTo(HaveOccurred(), "the error as given is not changed")
	for _, err := range []error{nil, errors.New("x"), driver.NewQuotaError("", "", errors.New("x"))} {
		if err == nil {
			r.Expect(r.Explain("r", asked, err)).To(Succeed())
		} else {
			r.Expect(r.Explain("r", asked, err)).To(BeIdenticalTo(err))
		}
	}
}

// A shortage does not outlive its time because of a clock that was set back.
func TestAClockThatIsSetBack(t *testing.T) {
	r := newRig(t)
	r.Report("r", asked, lacking(false))
	r.passes(-time.Hour)
	r.Expect(r.at(asked)).To(Equal(time.Duration(0)))
	r.passes(DefaultTTL - 1)
	r.Expect(r.short(asked)).To(BeTrue())
	r.passes(1)
	r.Expect(r.short(asked)).To(BeFalse())
}

// What is short is what the latest reports within the TTL say, in whatever order they come.
func TestAMemoryIsItsReports(t *testing.T) {
	for seed := range uint64(40) {
		random := rand.New(rand.NewPCG(seed, 0))
		r := newRig(t)
		latest := map[[3]string]time.Time{}
		for range 100 {
			r.passes(time.Duration(random.Int64N(int64(DefaultTTL / 10))))
			names := [3]string{fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(3)), fmt.Sprint(random.IntN(2))}
			c, when := candidate(names[0], names[1], names[2]), r.fake.Now()
			if random.IntN(2) == 0 {
				r.Report("r", c, lacking(false))
			} else {
				when = when.Add(-time.Duration(random.Int64N(int64(2 * DefaultTTL))))
				r.Saw("r", c, when)
			}
			if when.After(latest[names]) {
				latest[names] = when
			}
			for names, when := range latest {
				want := r.fake.Since(when)
				if want >= DefaultTTL {
					want = -1
				}
				if at := r.at(candidate(names[0], names[1], names[2])); at != want {
					t.Fatalf("seed %d: %v is short since %v, not %v", seed, names, at, want)
				}
			}
		}
		r.passes(DefaultTTL)
		r.Mark("r", nil)
		r.Expect(r.since).To(BeEmpty())
	}
}

func TestManyAtOnce(t *testing.T) {
	r := newRig(t)
	var all sync.WaitGroup
	for i := range 50 {
		all.Go(func() {
			c := candidate(fmt.Sprint(i%5), "a1", "")
			for range 20 {
				r.Report("r", c, lacking(i%2 == 0))
				r.SawInstances("r", []driver.Instance{{InstanceType: "x", Interrupted: true, LaunchTime: r.fake.Now()}})
				_ = r.Explain("r", c, lacking(false))
				r.Mark("r", []driver.Candidate{c})
				r.measure(map[offering]int{}, map[offering]int{})
			}
		})
	}
	all.Wait()
	total := 0
	for _, n := range r.refusals {
		total += n.count
	}
	r.Expect(total).To(Equal(1000))
}

// A subnet that spans failure domains lacks addresses in all of them, for all types, and for nothing else.
func TestASubnetThatSpansFailureDomains(t *testing.T) {
	r := newRig(t)
	in := func(subnet, zone string) driver.Candidate {
		c := candidate("m5", zone, "")
		c.Subnet = subnet
		return c
	}
	r.Report("r", in("one", "a1"), lacking(true))
	r.Expect(r.short(in("one", "b1"))).To(BeTrue())
	r.Expect(r.short(in("other", "a1"))).To(BeFalse())
	r.Expect(r.short(candidate("m5", "a1", ""))).To(BeFalse())
	r.Expect(r.Explain("r", in("one", "a1"), lacking(true))).To(MatchError(ContainSubstring("m5 in one: ")))
	r.Report("r", in("one", "a1"), lacking(false))
	r.Expect(r.short(in("other", "a1"))).To(BeTrue(), "that is of the type in the zone")
}

// What failed late for a reason of its place's own proves nothing about the failure domain.
func TestAListedShortageOfThePlaceAlone(t *testing.T) {
	r := newRig(t)
	failed := driver.Instance{
		InstanceType:     "m5",
		FailureDomain:    "a",
		Refused:          driver.ClassCapacity,
		RefusedOnlyPlace: true,
		LaunchTime:       r.fake.Now(),
	}
	r.SawInstances("r", []driver.Instance{failed})
	r.Expect(r.short(candidate("m5", "a1", ""))).To(BeFalse())
	failed.RefusedOnlyPlace = false
	r.SawInstances("r", []driver.Instance{failed})
	r.Expect(r.short(candidate("m5", "a1", ""))).To(BeTrue())
}
