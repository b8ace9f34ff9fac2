package inventory

import (
	"context"
	"strconv"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// What carries the mark of a machine beside its own instance is reported, by the list that is made anyway.
func TestReportsOthersWithTheSameMark(t *testing.T) {
	r := newRig(t)
	marked := func(id, owner string, state driverv1.InstanceState) driver.Instance {
		i := instance(id, state)
		i.OwnerUID, i.Owner = "uid", owner
		return i
	}
	h := handle("i-1")
	h.OwnerUID, h.Owner = "uid", "ns/one"
	r.cloud.answer(nil, marked("i-1", "ns/one", driverv1.InstanceRunning))
	r.inventory.Track(one, h, true)
	r.lists(1)
	r.Eventually(r.woken).Should(ConsistOf("one"))
	r.Expect(r.inventory.Track(one, h, true).Others).To(BeEmpty())

	r.cloud.answer(nil, marked("i-1", "ns/one", driverv1.InstanceRunning), marked("i-2", "ns/one", driverv1.InstanceRunning),
		marked("i-3", "ns/two", driverv1.InstanceRunning), marked("i-4", "ns/one", driverv1.InstanceTerminated))
	r.clock.Step(fast)
	r.lists(2)
	r.Eventually(r.woken).Should(ConsistOf("one"))
	view := r.inventory.Track(one, h, true)
	r.Expect(view.Others).To(HaveLen(1), "neither a foreign one nor one that has ended")
	r.Expect(view.Others[0].ProviderID).To(Equal("i-2"))
	h.ProviderID = ""
	_, ok := r.inventory.Owned(h)
	r.Expect(ok).To(BeTrue())
	h.Owner = "ns/none"
	_, ok = r.inventory.Owned(h)
	r.Expect(ok).To(BeFalse())
}

// What does not come within minutes is not asked for every few seconds for days.
func TestListsBackOffWhileNothingChanges(t *testing.T) {
	r := newRig(t)
	r.cloud.answer(nil, instance("i-1", driverv1.InstanceTerminating))
	r.inventory.Track(one, handle("i-1"), true)
	r.lists(1)
	began := r.clock.Now()
	for n := 2; r.clock.Since(began) < time.Hour; n++ {
		for r.cloud.listed() < n {
			r.clock.Step(time.Second)
			r.Eventually(r.clock.HasWaiters).Should(BeTrue())
		}
		r.inventory.Track(one, handle("i-1"), false)
		r.inventory.Track(one, handle("i-1"), true)
	}
	r.Expect(r.cloud.listed()).To(BeNumerically("<", 100), "1200 at the fast pace")

	r.cloud.answer(nil, instance("i-1", driverv1.InstanceTerminated))
	n := r.cloud.listed()
	r.clock.Step(2 * slow)
	r.lists(n + 1)
	r.clock.Step(fast)
	r.lists(n + 2)
}

// Many launches one after the other always leave one that waits, and each list is of all instances.
func TestListsLessOftenInALongSpell(t *testing.T) {
	r := newRig(t)
	s := newScope(driver.Scope{}, r.cloud, r.inventory.opts, r.inventory.wake)
	name := func(n int) types.NamespacedName { return types.NamespacedName{Name: strconv.Itoa(n)} }
	var pauses []time.Duration
	var listed time.Duration
	const launches, starts = 165, 15
	for second := range launches + starts {
		if second < launches {
			s.track(name(second), handle(strconv.Itoa(second)), true)
		}
		if second >= starts {
			s.track(name(second-starts), handle(strconv.Itoa(second-starts)), false)
		}
		if since := time.Duration(second) * time.Second; since-listed >= s.pause() {
			pauses, listed = append(pauses, since-listed), since
		}
		r.clock.Step(time.Second)
	}
	r.Expect(pauses[:9]).To(HaveEach(fast), "as for a few machines at first")
	r.Expect(pauses).To(HaveEach(BeNumerically("<=", 3*fast)), "who comes late must not wait for long")
	r.Expect(len(pauses)).To(BeNumerically("<", 33), "60 at the fast pace")

	r.Expect(s.pause()).To(BeNumerically(">", 3*fast), "nothing is awaited")
	s.track(one, handle("one"), true)
	r.Expect(s.pause()).To(Equal(fast), "another spell begins")
	for range 4 {
		r.clock.Step(10 * fast)
		s.pause()
	}
	s.track(two, handle("two"), true)
	r.Expect(s.pause()).To(Equal(fast), "what has been awaited for long is no reason to see others later")
}

// listerFunc is a Lister.
type listerFunc func() []driver.Instance

func (f listerFunc) List(context.Context, driver.Scope) ([]driver.Instance, error) { return f(), nil }

// A list that was under way when an instance was ended shows it as running, and is no reason to end it again.
func TestAListDoesNotUndoWhatWasReportedMeanwhile(t *testing.T) {
	r := newRig(t)
	var s *scope
	ending := instance("i-1", driverv1.InstanceTerminating)
	s = newScope(driver.Scope{}, listerFunc(func() []driver.Instance {
		s.putIn(ending)
		return []driver.Instance{instance("i-1", driverv1.InstanceRunning)}
	}), r.inventory.opts, r.inventory.wake)
	h := handle("i-1")
	s.track(one, h, false)
	s.tracked[one].seen = View{Instance: ending, Known: true}
	s.enter([]driver.Instance{instance("i-1", driverv1.InstanceRunning)}, nil, r.clock.Now())
	s.tracked[one].seen = View{Instance: ending, Known: true, Listed: true, ListedAt: r.clock.Now()}
	s.list(t.Context())
	r.Expect(s.view(h).Instance.State).To(Equal(driverv1.InstanceTerminating))

	s.enter([]driver.Instance{instance("i-1", driverv1.InstanceTerminated)}, nil, r.clock.Now())
	r.Expect(s.view(h).Instance.State).To(Equal(driverv1.InstanceTerminated), "the next list counts")
}

// Nothing but this package could recover from it, so the process would end.
func TestAListThatPanicsHasFailed(t *testing.T) {
	r := newRig(t)
	s := newScope(driver.Scope{}, listerFunc(func() []driver.Instance { panic("broken") }), r.inventory.opts, r.inventory.wake)
	s.track(one, handle("i-1"), false)
	s.list(t.Context())
	r.Expect(s.view(handle("i-1")).Err).To(MatchError(ContainSubstring("panicked")))
}
