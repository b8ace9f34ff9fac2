package freeze

import (
	"context"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// takesOver is a process that has been on standby for a day: nothing asked it about the Cluster, which was created meanwhile, and of which
// the previous core reported that, ten minutes ago.
func takesOver(reason, message string) *world {
	w := newWorld(0)
	w.clock.Step(24 * time.Hour)
	c := named(cluster)
	c.CreationTimestamp = metav1.NewTime(w.clock.Now().Add(-time.Hour))
	if reason != "" {
		c.Status.Conditions = []metav1.Condition{{
			Type: clusterv1.MachineHealthCheckRemediationAllowedCondition, Status: metav1.ConditionFalse, Reason: reason, Message: message,
			LastTransitionTime: metav1.NewTime(w.clock.Now().Add(-10 * time.Minute)),
		}}
	}
	w.RecallAtOnce(apiServer(func(context.Context) error { return nil }, c, named(other)))
	return w
}

// TestAStandbyTakesOverInAnOutage: it is no older than its work, however long it has waited. It knows nothing of target clusters before.
func TestAStandbyTakesOverInAnOutage(t *testing.T) {
	g := NewWithT(t)
	w := takesOver("", "")
	w.lose(cluster)
	g.Expect(w.Frozen(cluster).Unread).To(BeTrue(), "the Cluster is older than the first question")

	w = takesOver(TargetAPIServerUnreachableReason, "")
	begin := w.clock.Now()
	w.lose(cluster)
	w.clock.Step(DefaultTimeout / 2)
	w.restore(cluster)
	state := w.Frozen(cluster)
	g.Expect(state.Reason).To(Equal(RecoveringReason), "Nodes could not report before")
	g.Expect(state.Since).To(BeTemporally("==", begin.Add(-10*time.Minute)))
	g.Expect(state.Until).To(Equal(w.clock.Now().Add(DefaultGrace)))
}

// TestAStandbyTakesOverWhatIsReported of a restore, and of a time without a core.
func TestAStandbyTakesOverWhatIsReported(t *testing.T) {
	g := NewWithT(t)
	w := takesOver(RestoreSuspectedReason, "")
	g.Expect(w.Frozen(cluster).Reason).To(Equal(RestoreSuspectedReason))
	g.Expect(w.Frozen(cluster).Until).To(Equal(w.clock.Now().Add(DefaultRestoreGrace)))

	w = newWorld(0)
	w = takesOver(CoreWasAwayReason, "No Machine is replaced until then: no core was running from "+
		stamp(w.clock.Now().Add(22*time.Hour))+" to "+stamp(w.clock.Now().Add(23*time.Hour)))
	g.Expect(w.Frozen(cluster).Reason).To(Equal(CoreWasAwayReason))
	g.Expect(w.Frozen(cluster).Until).To(Equal(w.clock.Now().Add(DefaultGrace)))
	_, look := w.restorable(cluster)
	g.Expect(look).To(Equal(needed))
}
