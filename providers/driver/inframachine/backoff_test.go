package inframachine

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/providers/driver"
)

func TestDefaultBackoff(t *testing.T) {
	for _, test := range []struct {
		class driver.Class
		n     int
		want  time.Duration
	}{
		{driver.ClassCapacity, 1, 2 * time.Second},
		{driver.ClassCapacity, 3, 8 * time.Second},
		{driver.ClassCapacity, 100, 3 * time.Minute},
		{driver.ClassThrottle, 1, time.Second},
		{driver.ClassThrottle, 100, time.Minute},
		{driver.ClassQuota, 1, 30 * time.Second},
		{driver.ClassQuota, 100, 10 * time.Minute},
		{driver.ClassAuth, 2, time.Minute},
		{driver.ClassUnresolved, 1, 30 * time.Second},
		{driver.ClassUnresolved, 100, 10 * time.Minute},
		{driver.ClassTerminal, 1, time.Minute},
		{driver.ClassUnknown, 1, time.Second},
		{driver.ClassUnknown, 1000000, 5 * time.Minute},
	} {
		NewWithT(t).Expect(DefaultBackoff(test.class, test.n)).To(Equal(test.want), "%s %d", test.class, test.n)
	}
}

func TestBackoff(t *testing.T) {
	g := NewWithT(t)
	clk := clocktesting.NewFakePassiveClock(time.Unix(1000, 0))
	b := newBackoff(clk, DefaultBackoff, rand.N)
	key := types.NamespacedName{Name: "m"}
	wait, err := b.remaining(key)
	g.Expect(wait).To(BeZero())
	g.Expect(err).NotTo(HaveOccurred())

	capacity := driver.NewCapacityError("Run", "C", errors.New("x"))
	within := func(d, want time.Duration) {
		t.Helper()
		g.Expect(d).To(And(BeNumerically(">=", want), BeNumerically("<=", want*6/5)))
	}
	within(b.fail(key, capacity), 2*time.Second)
	within(b.fail(key, capacity), 4*time.Second)
	wait, err = b.remaining(key)
	within(wait, 4*time.Second)
	g.Expect(err).To(Equal(capacity))

	quota := driver.NewQuotaError("Run", "Q", errors.New("x"))
	within(b.fail(key, quota), 2*time.Minute) // Both are shortages, which one launch may meet by turns.
	within(b.failNext(key, quota, 2), 2*time.Second)
	within(b.failNext(key, capacity, 2), 2*time.Second)
	within(b.failNext(key, capacity, 2), 16*time.Second)                                  // There were no more than two offerings.
	within(b.fail(key, driver.NewAuthError("Run", "A", errors.New("x"))), 30*time.Second) // another class begins again
	asked := driver.NewThrottleError("Run", "T", time.Hour, errors.New("x"))
	g.Expect(b.fail(key, asked)).To(Equal(time.Hour), "what the cloud asks for")

	within(b.failTimes(key, capacity, 3), 8*time.Second) // the first that this process knows of
	within(b.fail(key, capacity), 16*time.Second)

	clk.SetTime(b.entries[key].until)
	wait, err = b.remaining(key)
	g.Expect(wait).To(BeZero())
	g.Expect(err).NotTo(HaveOccurred())
	b.forget(key)
	within(b.fail(key, asked.Err), time.Second)

	waits := map[time.Duration]bool{}
	for n := range 50 {
		waits[b.fail(types.NamespacedName{Name: fmt.Sprint(n)}, capacity)] = true
	}
	g.Expect(len(waits)).To(BeNumerically(">", 1), "many machines do not come back at once")
}

func TestAFailureDoesNotOutliveWhatTheCallWasFor(t *testing.T) {
	g := NewWithT(t)
	b := newBackoff(clocktesting.NewFakePassiveClock(time.Unix(1000, 0)), DefaultBackoff, rand.N)
	key := types.NamespacedName{Name: "m"}
	waits := func() bool { wait, _ := b.remaining(key); return wait > 0 }
	launching, deleting := subject{uid: "u"}, subject{uid: "u", deleting: true}
	quota := driver.NewQuotaError("Run", "Q", errors.New("x"))

	b.fail(key, quota)
	b.begin(key, deleting)
	g.Expect(waits()).To(BeTrue(), "nothing has changed that is known")
	b.forget(key)
	b.begin(key, launching)
	g.Expect(waits()).To(BeFalse(), "nothing has failed")
	b.fail(key, quota)
	b.begin(key, launching)
	g.Expect(waits()).To(BeTrue())
	b.begin(key, deleting)
	g.Expect(waits()).To(BeFalse(), "a deletion begins again")
	b.fail(key, quota)
	b.begin(key, deleting)
	g.Expect(waits()).To(BeTrue(), "its own failures count")
	b.begin(key, subject{uid: "recreated"})
	g.Expect(waits()).To(BeFalse(), "another object of the name")

	b.fail(key, driver.NewThrottleError("Run", "T", 0, errors.New("x")))
	b.begin(key, subject{uid: "recreated", deleting: true})
	g.Expect(waits()).To(BeTrue(), "calls are throttled, whatever they are for")
	b.end(key)
	g.Expect(waits()).To(BeFalse())
	g.Expect(b.subjects).To(BeEmpty())
}
