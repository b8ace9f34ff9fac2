package machines

import (
	"slices"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// TestSlowDeletions: a deletion is named from its deadline on, with what it waits for, and the owner comes back when the next
// becomes slow.
func TestSlowDeletions(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	named := func(name string, since time.Duration, Deleting ...metav1.Condition) *clusterv1.Machine {
		m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if since > 0 {
			m.DeletionTimestamp = &metav1.Time{Time: now.Add(-since)}
		}
		m.Status.Conditions = Deleting
		return m
	}
	const kind = clusterv1.MachineDeletingCondition
	all := []*clusterv1.Machine{
		named("drains", time.Hour, conditions.True(kind, clusterv1.MachineDeletingDrainingNodeReason, "pod p stays")),
		named("says-nothing", SlowDeletion, conditions.True(kind, clusterv1.MachineDeletingWaitingForVolumeDetachReason, "")),
		named("not-reported", SlowDeletion, conditions.False(kind, clusterv1.MachineNotDeletingReason, "")),
		named("quick", SlowDeletion-time.Minute), named("quicker", time.Minute), named("stays", 0),
	}
	g := NewWithT(t)
	g.Expect(SlowDeletions(all, now)).To(Equal("\nBeing deleted for more than 15 minutes:\n" +
		"* Machine says-nothing: WaitingForVolumeDetach\n* Machine not-reported: being deleted\n* Machine drains: pod p stays"))
	g.Expect(SlowDeletions(all[3:], now)).To(BeEmpty())

	g.Expect(RequeueAfterSlowDeletion(all, now).After()).To(Equal(time.Minute))
	g.Expect(RequeueAfterSlowDeletion(all, now.Add(time.Minute)).After()).To(Equal(13 * time.Minute))
	g.Expect(RequeueAfterSlowDeletion(all, now.Add(14*time.Minute)).After()).To(BeZero())
	g.Expect(RequeueAfterSlowDeletion(all, now).Finished()).To(BeTrue())
	slices.Reverse(all)
	g.Expect(RequeueAfterSlowDeletion(all, now).After()).To(Equal(time.Minute), "in any order")
	g.Expect(DeletionStage(named("new", time.Hour)).Message).To(Equal("being deleted"), "before its condition says more")
}
