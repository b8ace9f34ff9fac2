package inframachine

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

const (
	// ForceDeletionAnnotation ends a deletion at once, with a value that strconv.ParseBool reads as true. On a Machine that is being
	// deleted it forces the drain. On an infrastructure machine it has the provider terminate the instance without waiting for the Machine.
	ForceDeletionAnnotation = "machine.millwright.dev/force-deletion"
	// WaitingForMachineDeletionReason is the reason of the condition Ready of an infrastructure machine that is being deleted, and whose
	// provider does not terminate the instance yet (IM-042).
	WaitingForMachineDeletionReason = "WaitingForMachineDeletion"
)

// MayTerminate reports whether the deletion of a Machine has come to its infrastructure: hooks, drain and volumes are over, or there
// were none. The core writes this to the condition Deleting; that of Cluster API has the same reasons.
func MayTerminate(machine *clusterv1.Machine) bool {
	deleting := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineDeletingCondition)
	if machine.DeletionTimestamp.IsZero() || deleting == nil || deleting.Status != metav1.ConditionTrue {
		return false
	}
	switch deleting.Reason {
	case clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason,
		clusterv1.MachineDeletingDeletingNodeReason, clusterv1.MachineDeletingDeletionCompletedReason:
		return true
	}
	return false
}
