package inventory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

var expired = driver.NewAuthError("DescribeInstances", "AuthFailure", errors.New("credentials have expired"))

// outage is what a machine sees of an outage.
func (r *rig) outage() *Outage { return r.inventory.Track(one, handle("i-1"), false).Outage }

// fails has n slow lists fail.
func (r *rig) fails(n int) {
	r.t.Helper()
	for range n {
		next := r.cloud.listed() + 1
		r.clock.Step(slow * 11 / 10)
		r.lists(next)
	}
}

func TestAnOutageBeginsAfterSomeTimeAndEndsWithAList(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(nil, instance("i-1", driverv1.InstanceRunning))
	r.inventory.Track(one, handle("i-1"), false)
	r.lists(1)
	r.Eventually(r.woken).Should(ConsistOf("one"), "its instance is seen")
	began := r.clock.Now()
	r.cloud.answer(expired, instance("i-1", driverv1.InstanceRunning))
	r.fails(2)
	r.Expect(r.outage()).To(BeNil(), "some lists may fail")
	r.Expect(r.woken()).To(BeEmpty())
	r.fails(1)
	r.Eventually(r.outage).ShouldNot(BeNil())
	r.Expect(r.outage().LastListed).To(Equal(began))
	r.Expect(r.outage().Since).To(Equal(began))
	r.Expect(r.outage().Err).To(MatchError(ContainSubstring("expired")))
	r.Eventually(r.woken).Should(ConsistOf("one"), "it has to report it")
	r.fails(4)
	r.Expect(r.woken()).To(BeEmpty(), "once")

	r.cloud.answer(nil, instance("i-1", driverv1.InstanceRunning))
	r.fails(1)
	r.Eventually(r.outage).Should(BeNil())
	r.Eventually(r.woken).Should(ConsistOf("one"))
}

func TestAProcessThatHasNeverListedDoesNotReportWhenItDid(t *testing.T) {
	r := newRig(t)
	began := r.clock.Now()
	r.cloud.answer(expired)
	r.inventory.Track(one, handle("i-1"), false)
	r.lists(1)
	r.fails(3)
	r.Eventually(r.outage).ShouldNot(BeNil())
	r.Expect(r.outage().LastListed).To(BeZero())
	r.Expect(r.outage().Since).To(Equal(began))
}

func TestHowLongListsFailBeforeThatIsAnOutage(t *testing.T) {
	for name, c := range map[string]struct {
		opts Options
		want time.Duration
	}{
		"by default":                     {Options{Slow: time.Minute}, DefaultUnreachableAfter},
		"as chosen":                      {Options{Slow: time.Minute, UnreachableAfter: 4 * time.Minute}, 4 * time.Minute},
		"longer than by default":         {Options{Slow: time.Minute, UnreachableAfter: time.Hour}, time.Hour},
		"not after one list that fails":  {Options{Slow: time.Minute, UnreachableAfter: time.Second}, 3 * time.Minute},
		"nor by default with slow lists": {Options{Slow: 2 * time.Minute}, 6 * time.Minute},
		"a negative time is none at all": {Options{Slow: time.Minute, UnreachableAfter: -time.Hour}, 3 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) { NewWithT(t).Expect(c.opts.unreachableAfter()).To(Equal(c.want)) })
	}
}

// A list that fails at the moment itself is late enough.
func TestTheMomentAtWhichAnOutageBeginsAndItsReasonChanges(t *testing.T) {
	g, clk := NewWithT(t), clocktesting.NewFakeClock(time.Unix(1000, 0))
	s := newScope(driver.Scope{Location: "r"}, nil, Options{Clock: clk, Slow: slow}, wake.New())
	s.track(one, handle("i-1"), false)
	fails := func(after time.Duration, err error) *Outage {
		clk.Step(after)
		s.enter(nil, err, clk.Now())
		return s.outage
	}
	clk.Step(time.Hour)
	listed := clk.Now()
	s.enter(nil, nil, listed)
	g.Expect(fails(DefaultUnreachableAfter-1, expired)).To(BeNil(), "it counts from the latest list, not from when lists began")
	s.track(two, handle("i-2"), false)
	began := fails(1, expired)
	g.Expect(began).To(HaveField("Since", listed), "another machine does not let the time begin again")
	g.Expect(began.LastListed).To(Equal(listed))

	other := driver.NewThrottleError("DescribeInstances", "RequestLimitExceeded", 0, errors.New("too many"))
	g.Expect(fails(DefaultUnreachableAfter-1, other)).To(BeIdenticalTo(began))
	s.track(types.NamespacedName{Name: "three"}, handle("i-3"), false)
	g.Expect(s.outage).To(BeIdenticalTo(began), "another machine does not end it")
	g.Expect(fails(1, other)).To(HaveField("Err", error(other)))

	for key := range s.tracked {
		s.forget(key)
	}
	s.track(one, handle("i-1"), false)
	g.Expect(s.outage).To(BeNil(), "there was no list while no machine was there")
	g.Expect(fails(DefaultUnreachableAfter-1, expired)).To(BeNil())
	g.Expect(fails(1, expired)).To(HaveField("Since", clk.Now().Add(-DefaultUnreachableAfter)))
}

// While there was no machine there was no list.
func TestALongTimeWithoutMachinesIsNoOutage(t *testing.T) {
	r := newRig(t)
	r.inventory.Track(one, handle("i-1"), false)
	r.lists(1)
	r.inventory.Forget(one)
	r.cloud.answer(expired)
	r.clock.Step(time.Hour)
	r.Eventually(r.clock.HasWaiters).Should(BeTrue())
	r.inventory.Track(one, handle("i-1"), false)
	r.fails(1)
	r.Expect(r.outage()).To(BeNil())
}

func TestTheReasonOfAnOutageChangesSeldom(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(expired)
	r.inventory.Track(one, handle("i-1"), false)
	r.lists(1)
	r.fails(3)
	r.Eventually(r.woken).Should(ConsistOf("one"))
	r.cloud.answer(driver.NewThrottleError("DescribeInstances", "RequestLimitExceeded", 0, errors.New("too many")))
	r.fails(1)
	r.Expect(r.outage().Err).To(MatchError(ContainSubstring("expired")))
	r.fails(2)
	r.Eventually(func() error { return r.outage().Err }).Should(MatchError(ContainSubstring("too many")))
	r.Eventually(r.woken).Should(ConsistOf("one"))
}

// Each of thousands of machines costs a write.
func TestAnOutageWakesMachinesOneAfterTheOther(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(expired)
	for n := range 100 {
		name := fmt.Sprintf("m-%d", n)
		r.inventory.Track(types.NamespacedName{Name: name}, handle(name), false)
	}
	r.lists(1)
	slowly := &recorded{TypedRateLimitingInterface: r.queue}
	r.Expect(r.inventory.Source().Start(t.Context(), slowly)).To(Succeed())
	r.fails(3)
	r.Eventually(slowly.len).Should(Equal(100))
	r.Expect(slowly.last()).To(Equal(99 * wakePause))
	r.Expect(99 * wakePause).To(BeNumerically(">", 9*time.Second))
}

func TestTheAgeOfWhatIsKnownIsMeasured(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(nil, instance("i-1", driverv1.InstanceRunning))
	scope := driver.Scope{Location: t.Name()}
	r.inventory.Track(one, driver.Handle{Scope: scope, ProviderID: "i-1"}, false)
	// What a list has shown is taken in after the clock is waited for.
	r.Eventually(func() int { return r.inventory.measure()[t.Name()].states[driverv1.InstanceRunning] }).Should(Equal(1))
	r.Eventually(r.clock.HasWaiters).Should(BeTrue())
	families, err := metrics.Registry.Gather()
	r.Expect(err).NotTo(HaveOccurred())
	r.Expect(families).
		To(ContainElements(HaveField("GetName()", "millwright_inventory_age_seconds"), HaveField("GetName()", "millwright_instances")))
	r.clock.Step(time.Minute)
	r.Expect(r.inventory.measure()).
		To(HaveKeyWithValue(t.Name(), measurement{60, map[driverv1.InstanceState]int{driverv1.InstanceRunning: 1}}))
	r.inventory.Forget(one)
	r.Expect(r.inventory.measure()).NotTo(HaveKey(t.Name()))
}
