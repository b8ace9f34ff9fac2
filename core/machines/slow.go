package machines

import (
	"cmp"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
)

// SlowDeletion is after how long the deletion of a Machine counts as slow, and is named by the conditions of its owners; the same
// as in Cluster API.
const SlowDeletion = 15 * time.Minute

// SlowDeletions names the Machines whose deletion takes long, with what each waits for, as lines that follow others; "" when there
// are none.
func SlowDeletions(all []*clusterv1.Machine, now time.Time) string {
	var slow []*clusterv1.Machine
	for _, machine := range all {
		if !machine.DeletionTimestamp.IsZero() && now.Sub(machine.DeletionTimestamp.Time) >= SlowDeletion {
			slow = append(slow, machine)
		}
	}
	if len(slow) == 0 {
		return ""
	}
	return fmt.Sprintf("\nBeing deleted for more than %d minutes:\n", SlowDeletion/time.Minute) +
		Aggregate(slow, "", Reasons{}, DeletionStage).Message
}

// RequeueAfterSlowDeletion requeues the owner of the Machines for when the next of their deletions becomes slow: no event comes then.
func RequeueAfterSlowDeletion(all []*clusterv1.Machine, now time.Time) outcome.Outcome {
	var next time.Time
	for _, machine := range all {
		if machine.DeletionTimestamp.IsZero() {
			continue
		}
		if at := machine.DeletionTimestamp.Add(SlowDeletion); at.After(now) && (next.IsZero() || at.Before(next)) {
			next = at
		}
	}
	if next.IsZero() {
		return outcome.Continue()
	}
	return outcome.ContinueAfter(next.Sub(now))
}

// DeletionStage is what the deletion of a Machine waits for, in the words of its condition Deleting.
func DeletionStage(machine *clusterv1.Machine) metav1.Condition {
	const kind = clusterv1.MachineDeletingCondition
	if found := meta.FindStatusCondition(machine.Status.Conditions, kind); found != nil && found.Status == metav1.ConditionTrue {
		return conditions.False(kind, found.Reason, cmp.Or(found.Message, found.Reason))
	}
	return conditions.False(kind, NotYetReportedReason, "being deleted")
}
