package freeze

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	testingclock "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

var first, second = client.ObjectKey{Namespace: "a", Name: "c"}, client.ObjectKey{Namespace: "a", Name: "d"}

// fixture is a core with two target clusters.
type fixture struct {
	*Freezer
	*WithT
	clock *testingclock.FakeClock
	// down is since when a target cluster has not answered.
	down    map[client.ObjectKey]time.Time
	notify  []func(client.ObjectKey)
	changes []client.ObjectKey
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{WithT: NewWithT(t), clock: testingclock.NewFakeClock(begin), down: map[client.ObjectKey]time.Time{}}
	f.Freezer = New(DefaultOptions(), f.clock, f)
	f.Freezer.OnChange(func(key client.ObjectKey) { f.changes = append(f.changes, key) })
	return f
}

func (f *fixture) Unanswered(key client.ObjectKey) (time.Time, string) {
	return f.down[key], "connection refused"
}

func (f *fixture) OnConnectivity(notify func(client.ObjectKey)) { f.notify = append(f.notify, notify) }

// turn has the API server of a target cluster unanswered since a time; the zero time for that it answers.
func (f *fixture) turn(key client.ObjectKey, down time.Time) {
	f.down[key] = down
	for _, notify := range f.notify {
		notify(key)
	}
}

// outage has a target cluster unreachable for a time.
func (f *fixture) outage(key client.ObjectKey, lasts time.Duration) {
	f.turn(key, f.clock.Now())
	f.clock.Step(lasts)
	f.turn(key, time.Time{})
}

// An outage freezes the Cluster of that API server alone. Its beginning and its end notify subscribers.
func TestFrozen_OutageOfOneTarget_FreezesThatCluster(t *testing.T) {
	f := newFixture(t)
	f.turn(first, time.Time{})
	f.changes = nil
	f.outage(first, 10*time.Minute)
	f.Expect(f.changes).To(Equal([]client.ObjectKey{first, first}))
	f.Expect(f.Frozen(first).Reason).To(Equal(RecoveringReason))
	f.Expect(f.NotBefore(first)).To(Equal(f.clock.Now().Add(DefaultGrace)))
	f.Expect(f.Frozen(second)).To(Equal(State{}))
	f.clock.Step(DefaultGrace)
	f.Expect(f.Frozen(first)).To(Equal(State{}))
}

// A process that becomes the leader after a day on standby knows nothing of a target cluster before it asks.
func TestFrozen_AskedLate_CountsFromTheFirstQuestion(t *testing.T) {
	f := newFixture(t)
	f.down[first] = f.clock.Now()
	f.clock.Step(24 * time.Hour)
	state := f.Frozen(first)
	f.Expect(state.Starting).To(BeTrue())
	f.Expect(state.Since).To(Equal(f.clock.Now()))
}

// The annotation of a user ends the grace, for that Cluster alone. An API server that does not answer stays one.
func TestDismiss(t *testing.T) {
	f := newFixture(t)
	for _, key := range []client.ObjectKey{first, second} {
		f.turn(key, time.Time{})
		f.outage(key, time.Minute)
	}
	f.changes = nil
	f.Dismiss(first)
	f.Expect(f.Frozen(first)).To(Equal(State{}))
	f.Expect(f.NotBefore(first)).To(Equal(f.clock.Now()), "Nodes are judged from now on")
	f.Expect(f.Frozen(second).Reason).To(Equal(RecoveringReason))
	f.Expect(f.changes).To(Equal([]client.ObjectKey{first}))
	f.Dismiss(first)
	f.Expect(f.changes).To(HaveLen(1), "nothing has changed")

	f.turn(first, f.clock.Now())
	f.clock.Step(DefaultTimeout)
	f.Dismiss(first)
	f.Expect(f.Frozen(first).Reason).To(Equal(TargetAPIServerUnreachableReason))
	f.turn(first, time.Time{})
	f.Expect(f.Frozen(first).Reason).To(Equal(RecoveringReason), "the next outage has a grace")
}

// The metric counts Clusters that have had a control plane, until they are deleted.
func TestCounts(t *testing.T) {
	f := newFixture(t)
	for _, key := range []client.ObjectKey{first, second} {
		f.turn(key, time.Time{})
	}
	f.turn(first, f.clock.Now())
	f.clock.Step(time.Hour)
	f.Expect(f.counts()).To(BeEmpty(), "they may never have had a control plane")
	f.Count(first)
	f.Count(second)
	f.Expect(f.counts()).To(Equal(map[string]int{TargetAPIServerUnreachableReason: 1}))
	f.Forget(first)
	f.Expect(f.Frozen(first).Active()).To(BeTrue())
	f.Expect(f.counts()).To(BeEmpty(), "the Cluster no longer exists")
}

func TestValidate(t *testing.T) {
	g := NewWithT(t)
	o := DefaultOptions()
	g.Expect(o.Validate()).To(Succeed())
	g.Expect((&Options{Timeout: 1}).Validate()).To(Succeed(), "the grace can be turned off")
	g.Expect((&Options{Grace: 1}).Validate()).NotTo(Succeed())
	g.Expect((&Options{Timeout: 1, Grace: -1}).Validate()).NotTo(Succeed())
}
