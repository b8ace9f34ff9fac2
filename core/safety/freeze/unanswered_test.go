package freeze

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestATargetThatHasNotAnsweredThisCore: it is unknown for how long an API server has not answered that does not answer a core that has
// just started. Nothing is replaced until it does, and the condition stays as it is.
func TestATargetThatHasNotAnsweredThisCore(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	begin := w.clock.Now()
	w.lose(cluster)
	state := w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(TargetAPIServerUnreachableReason))
	g.Expect(state.Unread).To(BeTrue(), "the condition stays until the timeout")
	g.Expect(state.Until).To(Equal(begin.Add(DefaultTimeout)), "then it changes")
	g.Expect(state.Message).To(And(ContainSubstring("has not answered since this core began"), ContainSubstring("connection refused")))
	g.Expect(w.NotBefore(cluster)).To(BeTemporally(">", begin.Add(24*time.Hour)), "no Machine is judged by what a Node reports")
	g.Expect(w.Frozen(other)).To(Equal(State{}), "it answers")

	w.clock.Step(DefaultTimeout)
	state = w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(TargetAPIServerUnreachableReason))
	g.Expect(state.Unread).To(BeFalse())
	g.Expect(state.Since).To(Equal(begin), "a core cannot say more")

	w = newWorld(0)
	w.lose(cluster)
	w.clock.Step(DefaultTimeout - 1)
	w.Dismiss(cluster)
	g.Expect(w.Frozen(cluster).Active()).To(BeTrue(), "it is unknown whether it answers")
	w.restore(cluster)
	g.Expect(w.Frozen(cluster)).To(Equal(State{}), "a start is no outage")
	w.lose(cluster)
	g.Expect(w.Frozen(cluster).Active()).To(BeFalse(), "a moment is no outage once it has answered")
}

// TestAnOutageOfTheCoreBeforeStays: its condition is not replaced by that of the grace as long as nothing has answered.
func TestAnOutageOfTheCoreBeforeStays(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	c := named(cluster)
	c.Status.Conditions = []metav1.Condition{{
		Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: TargetAPIServerUnreachableReason,
		LastTransitionTime: metav1.NewTime(w.clock.Now().Add(-10 * time.Minute)),
	}}
	w.RecallAtOnce(apiServer(func(context.Context) error { return nil }, c, named(other)))
	w.lose(cluster)
	state := w.Frozen(cluster)
	g.Expect(state.Unread).To(BeTrue())
	g.Expect(state.Reason).To(Equal(TargetAPIServerUnreachableReason))
	w.restore(cluster)
	g.Expect(w.Frozen(cluster).Reason).To(Equal(RecoveringReason))
}

// TestAClusterThatIsNotThereIsNotKept: what is known of it goes while a caller asks, and does not come back by that.
func TestAClusterThatIsNotThereIsNotKept(t *testing.T) {
	g := NewWithT(t)
	w := newWorld(0)
	w.RecallAtOnce(apiServer(func(context.Context) error { return nil }))
	g.Expect(w.Frozen(cluster).Unread).To(BeTrue())
	g.Expect(w.NotBefore(cluster)).To(BeTemporally(">", w.clock.Now()))
	g.Expect(w.clusters).To(BeEmpty())
}
