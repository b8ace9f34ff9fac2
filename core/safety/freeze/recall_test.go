package freeze

import (
	"context"
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestRecall: a core that ends during an outage or the grace after it does not end the grace; what else its predecessor has said says nothing
// of Nodes.
func TestRecall(t *testing.T) {
	const allowed = clusterv1.MachineHealthCheckRemediationAllowedCondition
	said := func(status metav1.ConditionStatus, reason string, ago time.Duration) []metav1.Condition {
		at := metav1.NewTime(time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC).Add(-ago))
		return []metav1.Condition{{Type: allowed, Status: status, Reason: reason, LastTransitionTime: at}}
	}
	for name, test := range map[string]struct {
		conditions []metav1.Condition
		fails      error
		grace      bool
	}{
		"the target did not answer":       {said("False", ReasonTargetAPIServerUnreachable, time.Minute), nil, true},
		"it was recovering":               {said("False", ReasonRecovering, time.Minute), nil, true},
		"it did, and that is over":        {said("True", ReasonRecovering, time.Minute), nil, false},
		"something else was the matter":   {said("False", ReasonRestoreSuspected, time.Minute), nil, false},
		"nothing was said":                {nil, nil, false},
		"said by a core that works still": {said("False", ReasonRecovering, 0), nil, false},
		"it cannot be read":               {said("False", ReasonRecovering, time.Minute), errors.New("broken"), false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			w := newWorld(0)
			c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
			c.Status.Conditions = test.conditions
			w.Recall(apiServer(func(context.Context) error { return test.fails }, c))
			begin := w.clock.Now()
			state := w.Frozen(cluster)
			g.Expect(state.Active()).To(Equal(test.grace))
			g.Expect(w.Frozen(other).Active()).To(BeFalse())
			if !test.grace {
				g.Expect(w.NotBefore(cluster)).To(BeZero())
				return
			}
			g.Expect(state.Reason).To(Equal(ReasonRecovering))
			g.Expect(state.Since).To(BeTemporally("==", begin.Add(-time.Minute)), "since its beginning")
			g.Expect(state.Until).To(Equal(begin.Add(DefaultGrace)))
			w.clock.Step(DefaultGrace)
			g.Expect(w.Frozen(cluster).Active()).To(BeFalse(), "it is recalled once")
		})
	}
}

// TestTheGraceBeginsWithTheFirstAnswer: a core that starts in the last moments of an outage has not seen it for as long as the timeout, and Nodes
// cannot report before its end.
func TestTheGraceBeginsWithTheFirstAnswer(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	c := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: cluster.Namespace, Name: cluster.Name}}
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: ReasonTargetAPIServerUnreachable,
		LastTransitionTime: metav1.NewTime(w.clock.Now().Add(-10 * time.Minute)),
	}}
	w.Recall(apiServer(func(context.Context) error { return nil }, c))
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
	g.Expect(w.Frozen(cluster).Reason).To(Equal(ReasonControlAPIServerUnreachable))

	w = newWorld(0)
	w.clock.Step(time.Hour)
	w.jump(time.Hour)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(ReasonClockJumped))
	w.clock.Step(time.Second)
	w.Dismiss(cluster)
	g.Expect(w.NotBefore(cluster)).To(Equal(w.clock.Now()), "Nodes are judged from then on")
	g.Expect(w.NotBefore(other)).To(Equal(w.clock.Now().Add(DefaultGrace-time.Second)), "those of others when their grace ends")
	w.clock.Step(DefaultGrace)
	g.Expect(w.NotBefore(cluster)).To(BeTemporally("<=", w.clock.Now()))
}

// TestNext is when a state begins unless somebody answers before; of two, the earlier.
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
	for name, first := range map[string]bool{"the clock jumps, then the target is back": true, "the target is back, then the clock jumps": false} {
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

// TestWithoutRestoreGrace nothing is suspected, and nobody waits for Nodes to be compared.
func TestWithoutRestoreGrace(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	w.Freezer.options.RestoreGrace = 0
	_, open := w.restorable()
	g.Expect(open).To(BeFalse())
	w.clock.Step(DefaultGrace)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
}

// TestALeaseThatIsNotKnown: after the grace nothing is left to wait for, since nobody knows when a backup would be from.
func TestALeaseThatIsNotKnown(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(-1)
	w.clock.Step(DefaultGrace)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse())
	g.Expect(w.NotBefore(cluster)).To(Equal(w.clock.Now()))
	_, open := w.restorable()
	g.Expect(open).To(BeFalse())
}

// TestALaterSignIsHeard: the one that makes somebody suspect notifies, and those after it only change the words.
func TestALaterSignIsHeard(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(2 * time.Hour)
	w.examined(cluster, "")
	w.examined(cluster, "the instances of Machines are gone: m")
	g.Expect(w.changes).To(Equal([]client.ObjectKey{cluster, cluster}))
	w.examined(cluster, "the instances of Machines are gone: m, n")
	g.Expect(w.changes).To(HaveLen(2))
	g.Expect(w.Frozen(cluster).Message).To(ContainSubstring("gone: m, n"))
}
