package machine

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/paused"
)

// Reasons that Cluster API does not have.
const (
	// ClusterMissingReason is the reason of Ready for a Machine whose Cluster does not exist.
	ClusterMissingReason = "ClusterDoesNotExist"
	// BeingCreatedReason is the reason for an object that does not exist yet within creationSettling. Another reason would mean that it
	// has existed, also to another process.
	BeingCreatedReason = "BeingCreated"
	// ObjectBeingDeletedReason is the reason of InfrastructureReady, and of the event, for an infrastructure machine that is being deleted
	// while its Machine is not.
	ObjectBeingDeletedReason = "ObjectBeingDeleted"
	// NodeOfAnotherMachineReason is the reason of NodeReady and NodeHealthy, and of the event, for a Machine whose provider ID is that of
	// another Machine.
	NodeOfAnotherMachineReason = "NodeOfAnotherMachine"
	// NodeSyncFailedReason is the reason of NodeHealthy when labels, annotations and taints of the Node cannot be written:
	// False before the first time, since the Node then keeps its taint and no Pod comes; True afterwards.
	NodeSyncFailedReason = "NodeSyncFailed"
	// PreservedReason means that the Machine is kept until a time.
	PreservedReason = "Preserved"
	// PreservedForEverReason means that the annotation with that time cannot be read, so that the Machine stays.
	PreservedForEverReason = "PreservedForEver"
	// PreservationEndedReason means that the time is over, or that a user has ended it: the Machine is deleted. It is an event's as well.
	PreservationEndedReason = "PreservationEnded"
)

// ownConditions are the types that this controller writes. Others may write any other type.
var ownConditions = []string{
	clusterv1.MachineAvailableCondition, clusterv1.MachineReadyCondition, clusterv1.MachineUpToDateCondition,
	clusterv1.MachineUpdatingCondition, clusterv1.MachineBootstrapConfigReadyCondition, clusterv1.MachineInfrastructureReadyCondition,
	clusterv1.MachineNodeHealthyCondition, clusterv1.MachineNodeReadyCondition, clusterv1.MachineDeletingCondition, clusterv1.PausedCondition,
	PreservedCondition,
}

// setConditions derives all conditions. The outcome is the deadline at which one of them changes without an event.
func (s *scope) setConditions() outcome.Outcome {
	s.set(paused.Condition(s.pausedBy()))
	if s.paused() {
		return outcome.Continue()
	}
	if s.cluster == nil && !s.Deleting() {
		s.set(conditions.Unknown(clusterv1.MachineReadyCondition, ClusterMissingReason,
			"Cluster "+s.Object.Spec.ClusterName+" does not exist: create it or delete the Machine"))
		return outcome.Continue()
	}
	if s.refused != nil && s.unfinalized() && !s.Deleting() {
		// Nothing was read or done.
		s.set(s.withRefusal(metav1.Condition{Type: clusterv1.MachineReadyCondition, Status: metav1.ConditionUnknown}))
		return s.setAvailableCondition()
	}
	s.set(s.bootstrapCondition())
	s.set(s.infrastructureCondition())
	deadline := s.setNodeConditions()
	s.set(s.deletingCondition())
	s.set(s.preservedCondition())
	updating, overdue := s.updatingCondition()
	s.set(updating)
	deadline = deadline.And(overdue).And(s.setUpToDateCondition())
	s.set(s.withRefusal(s.readyCondition()))
	return deadline.And(s.setAvailableCondition())
}

// set puts a condition into the status; one without a type means that nothing is known and leaves what was there.
func (s *scope) set(condition metav1.Condition) {
	if condition.Type != "" {
		conditions.Set(&s.Object.Status.Conditions, condition, s.Object.Generation, s.Now)
	}
}

func (s *scope) deletingCondition() metav1.Condition {
	if !s.Deleting() {
		return conditions.False(clusterv1.MachineDeletingCondition, clusterv1.MachineNotDeletingReason, "")
	}
	if s.progress.reason == "" && meta.IsStatusConditionTrue(s.Object.Status.Conditions, clusterv1.MachineDeletingCondition) {
		return metav1.Condition{}
	}
	if s.progress.reason == "" {
		s.progress.reason = clusterv1.MachineDeletingReason
	}
	return conditions.True(clusterv1.MachineDeletingCondition, s.progress.reason, s.progress.message)
}

// readyCondition summarizes the other conditions and the readiness gates.
func (s *scope) readyCondition() metav1.Condition {
	parts := []conditions.Part{
		{Type: clusterv1.MachineDeletingCondition, Negative: true, Override: s.deletingSummary()},
		{Type: clusterv1.MachineUpdatingCondition, Negative: true},
		{Type: clusterv1.MachineBootstrapConfigReadyCondition},
		{Type: clusterv1.MachineInfrastructureReadyCondition},
		{Type: clusterv1.MachineNodeHealthyCondition},
		{Type: clusterv1.MachineHealthCheckSucceededCondition, Optional: true},
	}
	for _, gate := range s.Object.Spec.ReadinessGates {
		parts = append(parts, conditions.Part{Type: gate.ConditionType, Negative: gate.Polarity == clusterv1.NegativePolarityCondition})
	}
	if s.Deleting() {
		// What was deleted on purpose is not reported.
		parts = parts[:1]
	}
	return conditions.Summarize(s.Object.Status.Conditions, conditions.Summary{
		Type: clusterv1.MachineReadyCondition, Good: clusterv1.MachineReadyReason,
		Bad: clusterv1.MachineNotReadyReason, Unknown: clusterv1.MachineReadyUnknownReason,
	}, parts...)
}

// deletingSummary leaves the details of a drain out of the summary, which MachineSet and Cluster aggregate and which
// would change with each pod.
func (s *scope) deletingSummary() string {
	if !s.Deleting() {
		return ""
	}
	return "Machine deletion in progress, stage: " + s.progress.reason
}

// setAvailableCondition sets whether the Machine has been ready for spec.minReadySeconds, and when it will have been.
func (s *scope) setAvailableCondition() outcome.Outcome {
	const conditionType = clusterv1.MachineAvailableCondition
	ready := meta.FindStatusCondition(s.Object.Status.Conditions, clusterv1.MachineReadyCondition)
	if ready == nil || ready.Status != metav1.ConditionTrue {
		s.set(conditions.False(conditionType, clusterv1.NotReadyReason, ""))
		return outcome.Continue()
	}
	minReady := time.Duration(ptr.Deref(s.Object.Spec.MinReadySeconds, 0)) * time.Second
	end := ready.LastTransitionTime.Add(minReady)
	if rest := end.Sub(s.Now); minReady > 0 && rest > 0 {
		s.set(
			conditions.False(
				conditionType,
				clusterv1.MachineWaitingForMinReadySecondsReason,
				"Available at "+end.UTC().Format(time.RFC3339)+" if it stays Ready",
			),
		)
		return outcome.ContinueAfter(rest)
	}
	s.set(conditions.True(conditionType, clusterv1.MachineAvailableReason, ""))
	return outcome.Continue()
}
