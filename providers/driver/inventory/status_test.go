package inventory

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// powered is a cloud whose lists show nothing of the power of its instances.
type powered struct {
	cloud
	statuses map[string]driver.Status
	failing  error
	asked    int
}

func (p *powered) ListStatus(context.Context, driver.Scope) (map[string]driver.Status, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked++
	return p.statuses, p.failing
}

func (p *powered) set(err error, statuses map[string]driver.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.statuses, p.failing = statuses, err
}

func (p *powered) times() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.asked
}

func TestASecondSourceShowsWhatListsLeaveOut(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewWithT(t)
		source := &powered{}
		spot := instance("i-1", driverv1.InstanceRunning)
		spot.Interruptible = true
		source.answer(nil, spot, instance("i-2", driverv1.InstanceRunning))
		i := New(source, Options{Clock: clock.RealClock{}, Fast: fast, Slow: slow, Timeout: time.Minute, StatusInterval: 10 * time.Minute})
		queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
		defer queue.ShutDown()
		g.Expect(i.Source().Start(t.Context(), queue)).To(Succeed())
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() { _ = i.Start(ctx) }()
		woken := func() (names []string) {
			synctest.Wait()
			for queue.Len() > 0 {
				request, _ := queue.Get()
				queue.Done(request)
				names = append(names, request.Name)
			}
			return names
		}

		i.Track(one, handle("i-1"), false)
		i.Track(two, handle("i-2"), false)
		time.Sleep(2 * time.Minute) // the first list, and the first of statuses
		woken()
		g.Expect(i.Track(one, handle("i-1"), false).Instance.State).To(Equal(driverv1.InstanceRunning))
		g.Expect(source.times()).To(Equal(1))

		source.set(nil, map[string]driver.Status{"i-1": {State: driverv1.InstanceStopped, Interrupted: true}})
		time.Sleep(11 * time.Minute)
		g.Expect(woken()).To(Equal([]string{"one"}), "only the one that has changed")
		view := i.Track(one, handle("i-1"), false)
		g.Expect(view.Instance.State).To(Equal(driverv1.InstanceStopped))
		g.Expect(view.Instance.Interrupted).To(BeTrue())

		source.set(errors.New("no"), nil)
		time.Sleep(11 * time.Minute)
		g.Expect(woken()).To(BeEmpty())
		g.Expect(i.Track(one, handle("i-1"), false).Instance.State).To(Equal(driverv1.InstanceStopped), "a failure takes nothing away")

		source.set(nil, nil)
		time.Sleep(11 * time.Minute)
		g.Expect(woken()).To(Equal([]string{"one"}))
		asked := source.times()
		i.Forget(one)
		i.Forget(two)
		time.Sleep(time.Hour)
		g.Expect(source.times()).To(Equal(asked), "without machines there is no request")
	})
}

// A launch that failed without an instance is known by its token; the instance of the next attempt is another one.
func TestWhatHasNoProviderIDIsKnownByItsToken(t *testing.T) {
	r := newRig(t)
	failed := driver.Instance{Token: "t-1", OwnerUID: "u", Owner: "ns/one", State: driverv1.InstanceFailed, Refused: driver.ClassCapacity}
	byToken := func(token string) driver.Handle {
		return driver.Handle{Scope: driver.Scope{Location: "r"}, Token: token, OwnerUID: "u", Owner: "ns/one"}
	}
	r.cloud.answer(nil, failed)
	r.inventory.Track(one, byToken("t-1"), true)
	r.lists(1)
	view := r.inventory.Track(one, byToken("t-1"), true)
	r.Expect(view.Known && view.Listed && view.EverListed).To(BeTrue())
	r.Expect(view.Instance).To(Equal(failed))
	r.Expect(view.Others).To(BeEmpty(), "there is no instance of it")

	view = r.inventory.Track(one, byToken("t-2"), true)
	r.Expect(view.Known).To(BeFalse())
	r.Expect(view.EverListed).To(BeFalse(), "of another attempt")
	r.Expect(view.Others).To(BeEmpty())

	r.inventory.Put(driver.Scope{Location: "r"}, driver.Instance{State: driverv1.InstancePending})
	r.Expect(r.inventory.scopes[driver.Scope{Location: "r"}].put).To(BeEmpty(), "nothing leads to what has neither")
}
