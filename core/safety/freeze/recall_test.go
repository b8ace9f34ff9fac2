package freeze

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRecall: a core that ends during an outage or the grace after it does not end the grace; what else its predecessor has said says
// nothing of Nodes.
func TestRecall(t *testing.T) {
	const allowed = clusterv1.MachineHealthCheckRemediationAllowedCondition
	reported := func(status metav1.ConditionStatus, reason string, ago time.Duration) []metav1.Condition {
		at := metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).Add(-ago))
		return []metav1.Condition{{Type: allowed, Status: status, Reason: reason, LastTransitionTime: at}}
	}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		grace      bool
	}{
		"the target did not answer":           {reported("False", TargetAPIServerUnreachableReason, time.Minute), true},
		"it was recovering":                   {reported("False", RecoveringReason, time.Minute), true},
		"it did, and that is over":            {reported("True", RecoveringReason, time.Minute), false},
		"something else was the matter":       {reported("False", ClockJumpedReason, time.Minute), false},
		"nothing was said":                    {nil, false},
		"reported by a core that works still": {reported("False", RecoveringReason, 0), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(0)
			c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
			c.Status.Conditions = test.conditions
			w.RecallAtOnce(apiServer(func(context.Context) error { return nil }, c, named(other)))
			begin := w.clock.Now()
			state := w.Frozen(cluster)
			g.Expect(state.Active()).To(Equal(test.grace))
			g.Expect(w.Frozen(other).Active()).To(BeFalse())
			if !test.grace {
				g.Expect(w.NotBefore(cluster)).To(BeZero())
				return
			}
			g.Expect(state.Reason).To(Equal(RecoveringReason))
			g.Expect(state.Since).To(BeTemporally("==", begin.Add(-time.Minute)), "since its beginning")
			g.Expect(state.Until).To(Equal(begin.Add(DefaultGrace)))
			w.clock.Step(DefaultGrace)
			g.Expect(w.Frozen(cluster).Active()).To(BeFalse(), "it is recalled once")
		})
	}
}

// TestTheGraceBeginsWithTheFirstAnswer: a core that starts in the last moments of an outage has not seen it for as long as the timeout, and
// Nodes cannot report before its end.
func TestTheGraceBeginsWithTheFirstAnswer(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: TargetAPIServerUnreachableReason,
		LastTransitionTime: metav1.NewTime(w.clock.Now().Add(-10 * time.Minute)),
	}}
	w.RecallAtOnce(apiServer(func(context.Context) error { return nil }, c, named(other)))
	w.lose(cluster)
	w.clock.Step(DefaultTimeout / 2)
	w.restore(cluster)
	back := w.clock.Now()
	g.Expect(w.Frozen(cluster).Until).To(Equal(back.Add(DefaultGrace)))
	g.Expect(w.NotBefore(cluster)).To(Equal(back.Add(DefaultGrace)))

	w.clock.Step(DefaultGrace)
	w.lose(cluster)
	w.clock.Step(DefaultTimeout / 2)
	w.restore(cluster)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse(), "a moment later on is no outage")
}

// TestWhatIsDismissed: graces and suspicions; of the two API servers none that does not answer.
func TestWhatIsDismissed(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.controlFailed(t.Context(), w.clock.Now(), errTest("etcd is away"))
	w.clock.Step(DefaultTimeout)
	w.Dismiss(cluster)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(ControlAPIServerUnreachableReason))

	w = newWorld(0)
	w.clock.Step(time.Hour)
	w.jump(time.Hour)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(ClockJumpedReason))
	w.clock.Step(time.Second)
	w.Dismiss(cluster)
	g.Expect(w.NotBefore(cluster)).To(Equal(w.clock.Now()), "Nodes are judged from then on")
	g.Expect(w.NotBefore(other)).To(Equal(w.clock.Now().Add(DefaultGrace-time.Second)), "those of others when their grace ends")
	w.clock.Step(DefaultGrace)
	g.Expect(w.NotBefore(cluster)).To(BeTemporally("<=", w.clock.Now()))
}

// TestNext is when a state begins unless there is an answer before; of two, the earlier.
func TestNext(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.turn(cluster)
	begin := w.clock.Now()
	w.controlFailed(t.Context(), begin, errTest("etcd is away"))
	w.clock.Step(DefaultTimeout / 2)
	w.lose(cluster)
	g.Expect(w.Frozen(cluster)).To(Equal(State{Next: begin.Add(DefaultTimeout)}))
	g.Expect(w.Frozen(other)).To(Equal(State{Next: begin.Add(DefaultTimeout)}))

	w = newWorld(0)
	w.turn(cluster)
	w.lose(cluster)
	begin = w.clock.Now()
	w.clock.Step(DefaultTimeout / 2)
	w.controlFailed(t.Context(), w.clock.Now(), errTest("etcd is away"))
	g.Expect(w.Frozen(cluster)).To(Equal(State{Next: begin.Add(DefaultTimeout)}))
}

// TestNotBeforeIsTheLatest of all graces.
func TestNotBeforeIsTheLatest(t *testing.T) {
	for name, first := range map[string]bool{"the clock jumps, then the target is back": true,
		"the target is back, then the clock jumps": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(0)
			w.turn(cluster)
			outage := func() {
				w.lose(cluster)
				w.clock.Step(DefaultTimeout)
				w.restore(cluster)
			}
			if first {
				w.jump(time.Hour)
				w.Frozen(cluster)
				outage()
			} else {
				outage()
				w.clock.Step(time.Second)
				w.jump(time.Hour)
				w.Frozen(cluster)
			}
			latest := w.clock.Now().Add(DefaultGrace)
			w.clock.Step(DefaultGrace)
			g.Expect(w.NotBefore(cluster)).To(Equal(latest))
		})
	}
}

// TestWithoutRestoreGrace nothing is suspected, and nothing waits for Nodes to be compared.
func TestWithoutRestoreGrace(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	w.Freezer.options.RestoreGrace = 0
	_, open := w.restorable(cluster)
	g.Expect(open).To(Equal(notNeeded))
	w.clock.Step(DefaultGrace)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
}

// inherits is a world in which a Cluster says what the previous core has left there, a minute ago.
func inherits(gap time.Duration, left State) *world {
	w := newWorld(gap)
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: left.Reason, Message: left.Message,
		LastTransitionTime: metav1.NewTime(w.clock.Now().Add(-time.Minute)),
	}}
	w.RecallAtOnce(apiServer(func(context.Context) error { return nil }, c, named(other)))
	return w
}

// TestACoreThatEndsSoonAfterATimeWithoutOne: the lease shows the next one that a core was at work a moment ago, but the Nodes have had no
// time to report, and nothing has compared them with the Machines.
func TestACoreThatEndsSoonAfterATimeWithoutOne(t *testing.T) {
	g := NewWithT(t)
	first := newWorld(2 * time.Hour)
	last := first.start.last
	left := first.Frozen(cluster)
	g.Expect(left.Reason).To(Equal(CoreWasAwayReason))
	g.Expect(left.Message).NotTo(ContainSubstring("ended soon"))

	w := inherits(10*time.Second, left)
	g.Expect(w.Frozen(other).Active()).To(BeFalse(), "it has said nothing")
	state := w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(CoreWasAwayReason))
	g.Expect(state.Until).To(Equal(w.clock.Now().Add(DefaultGrace)))
	g.Expect(state.Message).To(ContainSubstring("no core was running from 2026-11-23T10:00:00Z to 2026-11-23T12:00:00Z, except for one that ran only briefly"))
	g.Expect(w.NotBefore(cluster)).To(Equal(state.Until))
	since, open := w.restorable(cluster)
	g.Expect(open).To(Equal(needed))
	g.Expect(since).To(BeTemporally("==", last), "the time of a backup")
	_, open = w.restorable(other)
	g.Expect(open).To(Equal(notNeeded))
	w.clock.Step(DefaultGrace)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(CoreWasAwayReason), "the Nodes were not compared")
	w.examined(cluster, "")
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())

	again := inherits(10*time.Second, state)
	since, _ = again.restorable(cluster)
	g.Expect(since).To(BeTemporally("==", last), "however often it happens")
	unknown := inherits(-1, left)
	since, _ = unknown.restorable(cluster)
	g.Expect(since).To(BeTemporally("==", last), "the lease is gone")
	own := inherits(time.Hour, left)
	since, _ = own.restorable(cluster)
	g.Expect(since).To(Equal(own.start.last), "what the lease shows of a longer time without a core is later")
}

// TestACoreThatEndsBeforeItReportsAnything: it has taken the lease after a time without a core, and ends. The next ones know of that time
// all the same, however often it happens, until one was at work for a whole grace; and a time that is not one is not believed.
func TestACoreThatEndsBeforeItReportsAnything(t *testing.T) {
	g := NewWithT(t)
	first := newWorld(0)
	begin := first.clock.Now()
	last := begin.Add(-2 * time.Hour)
	key := client.ObjectKey{Namespace: "s", Name: "l"}
	lease := &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(last))
	server := apiServer(func(context.Context) error { return nil }, lease)
	// starts is a process that begins then, and takes the lease until it ends.
	starts := func(after, lives time.Duration) *world {
		w := newWorld(-1)
		w.clock.SetTime(begin.Add(after))
		w.Freezer = New(DefaultOptions(), w.clock, w)
		g.Expect(w.ReadLease(t.Context(), server, key)).To(Succeed())
		g.Expect(w.RecordAbsence(t.Context(), server, key)).To(Succeed())
		g.Expect(server.Get(t.Context(), key, lease)).To(Succeed())
		lease.Spec.AcquireTime = ptr.To(metav1.NewMicroTime(w.clock.Now()))
		lease.Spec.RenewTime = ptr.To(metav1.NewMicroTime(w.clock.Now().Add(lives)))
		g.Expect(server.Update(t.Context(), lease)).To(Succeed())
		return w
	}
	starts(0, 10*time.Second)
	for _, after := range []time.Duration{20 * time.Second, 100 * time.Second, 180 * time.Second} {
		w := starts(after, 60*time.Second)
		state := w.Frozen(cluster)
		g.Expect(state.Reason).To(Equal(CoreWasAwayReason), after.String())
		g.Expect(state.Until).To(Equal(w.clock.Now().Add(DefaultGrace)))
		g.Expect(state.Message).To(ContainSubstring("no core was running from 2026-11-23T10:00:00Z"))
		g.Expect(w.NotBefore(cluster)).To(Equal(state.Until))
		since, open := w.restorable(cluster)
		g.Expect(open).To(Equal(needed))
		g.Expect(since).To(BeTemporally("==", last))
	}
	starts(250*time.Second, DefaultGrace)
	later := 250*time.Second + DefaultGrace + 10*time.Second
	g.Expect(starts(later, time.Second).Frozen(cluster).Active()).To(BeFalse(), "one was at work for the whole grace")

	for _, text := range []string{"", "x", "2026-11-23T10:00:00Z", "2026-11-23T13:00:00Z/2026-11-23T12:00:00Z", "2026-11-23T10:00:00Z/soon"} {
		lease.Annotations = map[string]string{AwayAnnotation: text}
		g.Expect(server.Update(t.Context(), lease)).To(Succeed())
		later += 10 * time.Second
		g.Expect(starts(later, time.Second).Frozen(cluster).Active()).To(BeFalse(), text)
	}
}

// TestACoreThatEndsSoonAfterAnUnknownTime leaves its successor to compare Nodes with Machines, too.
func TestACoreThatEndsSoonAfterAnUnknownTime(t *testing.T) {
	g := NewWithT(t)
	w := inherits(0, newWorld(-1).Frozen(cluster))
	g.Expect(w.Frozen(cluster).Until).To(Equal(w.clock.Now().Add(DefaultGrace)))
	_, open := w.restorable(cluster)
	g.Expect(open).To(Equal(needed))
	w.clock.Step(DefaultGrace)
	g.Expect(w.Frozen(cluster).Active()).To(BeTrue())
	w.examined(cluster, "")
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
}
