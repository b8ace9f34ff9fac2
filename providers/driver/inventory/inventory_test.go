package inventory

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// cloud is a lister whose answer a test changes.
type cloud struct {
	mu        sync.Mutex
	instances []driver.Instance
	err       error
	lists     map[driver.Scope]int
}

func (c *cloud) List(_ context.Context, scope driver.Scope) ([]driver.Instance, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lists == nil {
		c.lists = map[driver.Scope]int{}
	}
	c.lists[scope]++
	return c.instances, c.err
}

func (c *cloud) answer(err error, instances ...driver.Instance) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.instances, c.err = instances, err
}

func (c *cloud) listed() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.lists[driver.Scope{Location: "r"}]
}

// rig is an Inventory at work on a clock that a test moves.
type rig struct {
	*GomegaWithT
	t         *testing.T
	clock     *clocktesting.FakeClock
	cloud     *cloud
	inventory *Inventory
	queue     workqueue.TypedRateLimitingInterface[reconcile.Request]
}

const (
	fast = 3 * time.Second
	slow = 100 * time.Second
)

func newRig(t *testing.T) *rig {
	r := &rig{GomegaWithT: NewWithT(t), t: t, clock: clocktesting.NewFakeClock(time.Unix(1000, 0)), cloud: &cloud{}}
	r.inventory = New(r.cloud, Options{Clock: r.clock, Fast: fast, Slow: slow, Timeout: time.Minute})
	r.queue = workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	t.Cleanup(r.queue.ShutDown)
	r.Expect(r.inventory.Source().Start(t.Context(), r.queue)).To(Succeed())
	go func() { _ = r.inventory.Start(t.Context()) }()
	return r
}

var (
	one = types.NamespacedName{Name: "one"}
	two = types.NamespacedName{Name: "two"}
)

func handle(id string) driver.Handle {
	return driver.Handle{Scope: driver.Scope{Location: "r"}, ProviderID: id}
}

func instance(id string, state driverv1.InstanceState) driver.Instance {
	return driver.Instance{ProviderID: id, Token: "token-" + id, State: state}
}

// lists waits for the n-th list and until the next one is scheduled.
func (r *rig) lists(n int) {
	r.t.Helper()
	r.Eventually(r.cloud.listed).Should(Equal(n))
	r.Eventually(r.clock.HasWaiters).Should(BeTrue())
}

// passes moves the clock to just before d, where nothing may happen, and then past it.
func (r *rig) passes(d time.Duration) {
	r.t.Helper()
	before := r.cloud.listed()
	r.clock.Step(d - time.Millisecond)
	r.Consistently(r.cloud.listed, "50ms").Should(Equal(before))
	r.clock.Step(time.Millisecond)
}

// woken returns who is in the queue.
func (r *rig) woken() []string {
	var names []string
	for r.queue.Len() > 0 {
		request, _ := r.queue.Get()
		r.queue.Done(request)
		names = append(names, request.Name)
	}
	return names
}

// wokenSoFar returns a function that returns who has been in the queue since: of two that are woken, one may be there before the other.
func (r *rig) wokenSoFar() func() []string {
	var names []string
	return func() []string {
		names = append(names, r.woken()...)
		slices.Sort(names)
		names = slices.Compact(names)
		return names
	}
}

func TestListsFastOnlyInTransition(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(nil, instance("i-1", driverv1.InstancePending))
	r.inventory.Track(one, handle("i-1"), true)
	r.lists(1)
	r.passes(fast)
	r.lists(2)
	r.inventory.Track(one, handle("i-1"), false)
	r.clock.Step(fast)
	r.lists(3)
	r.clock.Step(slow * 90 / 100)
	r.Consistently(r.cloud.listed, "50ms").Should(Equal(3))
	r.clock.Step(slow * 20 / 100)
	r.lists(4)

	r.inventory.Track(one, handle("i-1"), true)
	r.Eventually(r.clock.HasWaiters).Should(BeTrue())
	r.Eventually(func() int { r.clock.Step(fast); return r.cloud.listed() }).Should(BeNumerically(">=", 5))
}

func TestListsNothingWithoutMachines(t *testing.T) {
	r := newRig(t)
	r.inventory.Track(one, handle("i-1"), true)
	r.lists(1)
	r.inventory.Forget(one)
	for range 5 {
		r.clock.Step(2 * slow)
		r.Eventually(r.clock.HasWaiters).Should(BeTrue())
	}
	r.Expect(r.cloud.listed()).To(Equal(1))
}

func TestWakesThoseWhoseInstanceChanged(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(nil, instance("i-1", driverv1.InstancePending), instance("i-2", driverv1.InstanceRunning))
	r.inventory.Track(one, handle("i-1"), true)
	r.inventory.Track(two, handle("i-2"), false)
	r.lists(1)
	r.Eventually(r.wokenSoFar()).Should(ConsistOf("one", "two"), "both are seen for the first time")
	for _, k := range []types.NamespacedName{one, two} {
		r.Expect(r.inventory.Track(k, handle("i-"+map[string]string{"one": "1", "two": "2"}[k.Name]), k == one).Listed).To(BeTrue())
	}

	r.clock.Step(fast)
	r.lists(2)
	r.Expect(r.woken()).To(BeEmpty(), "nothing changed")

	r.cloud.answer(nil, instance("i-1", driverv1.InstanceRunning), instance("i-2", driverv1.InstanceRunning))
	r.clock.Step(fast)
	r.lists(3)
	r.Eventually(r.woken).Should(ConsistOf("one"))

	r.cloud.answer(nil, instance("i-1", driverv1.InstanceRunning))
	r.clock.Step(fast)
	r.lists(4)
	r.Eventually(r.woken).Should(ConsistOf("two"), "it is not listed any more")
	r.Expect(r.inventory.Track(two, handle("i-2"), false).Known).To(BeFalse())
}

func TestFindsByToken(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(nil, instance("i-1", driverv1.InstancePending))
	byToken := driver.Handle{Scope: driver.Scope{Location: "r"}, Token: "token-i-1"}
	r.Expect(r.inventory.Track(one, byToken, true).Known).To(BeFalse())
	r.lists(1)
	r.Eventually(r.woken).Should(ConsistOf("one"))
	r.Expect(r.inventory.Track(one, byToken, true).Instance.ProviderID).To(Equal("i-1"))
	r.Expect(r.inventory.Track(one, driver.Handle{Scope: driver.Scope{Location: "r"}}, true).Known).To(BeFalse())
}

func TestPut(t *testing.T) {
	r := newRig(t)
	r.inventory.Track(one, handle("i-1"), true)
	r.lists(1)
	r.inventory.Put(driver.Scope{Location: "r"}, instance("i-1", driverv1.InstancePending))
	view := r.inventory.Track(one, handle("i-1"), true)
	r.Expect(view.Known).To(BeTrue())
	r.Expect(view.Listed).To(BeFalse())
	r.woken()

	r.clock.Step(fast)
	r.lists(2)
	r.Expect(r.woken()).To(BeEmpty(), "not listed yet is no change")
	r.Expect(r.inventory.Track(one, handle("i-1"), true).Known).To(BeTrue())

	r.cloud.answer(nil, instance("i-1", driverv1.InstanceRunning))
	r.clock.Step(fast)
	r.lists(3)
	r.Eventually(r.woken).Should(ConsistOf("one"))
	r.Expect(r.inventory.Track(one, handle("i-1"), true).Listed).To(BeTrue())

	r.inventory.Put(driver.Scope{Location: "r"}, instance("i-1", driverv1.InstanceTerminating))
	r.Expect(r.inventory.Track(one, handle("i-1"), true).Instance.State).
		To(Equal(driverv1.InstanceTerminating), "the latest answer of the cloud counts")
}

// What was put in is known before any list: the first one reports a change only where it does not hold it.
func TestFirstListThatConfirmsNotifiesNone(t *testing.T) {
	r := newRig(t)
	for _, id := range []string{"i-1", "i-2"} {
		r.inventory.Put(driver.Scope{Location: "r"}, instance(id, driverv1.InstancePending))
	}
	r.cloud.answer(nil, instance("i-1", driverv1.InstancePending))
	r.Eventually(r.clock.HasWaiters).Should(BeTrue())
	r.Expect(r.cloud.listed()).To(BeZero(), "nothing is tracked yet")
	r.inventory.Track(two, handle("i-2"), false)
	r.inventory.Track(one, handle("i-1"), true)
	r.lists(1)
	r.Eventually(r.woken).Should(ConsistOf("two"), "it is not listed")
	r.Consistently(r.woken, "50ms").Should(BeEmpty())
	r.Expect(r.inventory.Track(one, handle("i-1"), true).Listed).To(BeTrue())
}

func TestFailedLists(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(nil, instance("i-1", driverv1.InstancePending), instance("i-2", driverv1.InstanceRunning))
	r.inventory.Track(one, handle("i-1"), true)
	r.inventory.Track(two, handle("i-2"), false)
	r.lists(1)
	r.Eventually(func() int { return len(r.woken()) }).Should(BeNumerically(">=", 1))

	r.cloud.answer(driver.NewAuthError("List", "", errors.New("no")))
	r.clock.Step(fast)
	r.lists(2)
	r.Eventually(r.woken).Should(ConsistOf("one"), "what waits is woken; what runs is left alone")
	view := r.inventory.Track(one, handle("i-1"), true)
	r.Expect(view.Known).To(BeTrue(), "a failed list proves nothing about instances")
	r.Expect(driver.IsAuth(view.Err)).To(BeTrue())
	r.passes(2 * fast)
	r.lists(3)
	r.Expect(r.woken()).To(BeEmpty(), "the same failure wakes once")
	r.passes(4 * fast)
	r.lists(4)

	r.cloud.answer(nil, instance("i-1", driverv1.InstancePending), instance("i-2", driverv1.InstanceRunning))
	r.passes(8 * fast)
	r.lists(5)
	r.Eventually(r.woken).Should(ConsistOf("one"))
	r.passes(fast)
	r.lists(6)
}

func TestMachineThatChangesItsScope(t *testing.T) {
	r := newRig(t)
	r.inventory.Track(one, driver.Handle{Scope: driver.Scope{Location: "other"}, Token: "t"}, true)
	r.inventory.Track(one, handle("i-1"), true)
	r.Eventually(r.cloud.listed).Should(Equal(1))
	r.Expect(r.inventory.scopes[driver.Scope{Location: "other"}].tracked).To(BeEmpty())
}
