package machinehealth

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/core/health"
	"millwright.dev/core/machines"
)

const (
	// healthyMessage is the message of HealthCheckSucceeded=True. It distinguishes our condition from that of others, and does not name the
	// policies: another one would be a write to each Machine.
	healthyMessage = "Judged by MachineHealthChecks or the default policy"
	// askedMessage is the message of OwnerRemediated=False while the owner has not begun.
	askedMessage = "Waiting for the owner of the Machine to remediate it"
	// checkPrefix begins the messages about what a MachineHealthCheck has found.
	checkPrefix = "MachineHealthCheck "
)

// withdrawable are the reasons of OwnerRemediated with which the owner has not begun to remediate.
var withdrawable = []string{
	clusterv1.MachineOwnerRemediatedWaitingForRemediationReason, clusterv1.MachineSetMachineRemediationDeferredReason,
	clusterv1.MachineSetMachineCannotBeRemediatedReason,
}

// olderConditions are the conditions that clients of v1beta1 read.
var olderConditions = []conditions.Older{
	{Type: clusterv1.MachineHealthCheckSucceededCondition, As: clusterv1.MachineHealthCheckSucceededV1Beta1Condition},
	{Type: clusterv1.MachineOwnerRemediatedCondition, As: clusterv1.MachineOwnerRemediatedV1Beta1Condition},
}

// setConditions puts into the status of a target what the round has concluded. The owner is asked once: what it answers stays, unless it
// has remediated and the Machine is unhealthy again. It is asked no more when no policy allows it, for as long as it has not begun.
func (s *round) setConditions(t *target, status *clusterv1.MachineStatus) {
	set := func(c metav1.Condition) { conditions.Set(&status.Conditions, c, t.Generation, s.now) }
	if t.external != nil {
		set(*t.external)
	}
	if t.externalDone {
		meta.RemoveStatusCondition(&status.Conditions, clusterv1.MachineExternallyRemediatedCondition)
	}
	switch t.State {
	case health.Healthy:
		set(succeededCondition())
	case health.Unhealthy:
		set(conditions.False(clusterv1.MachineHealthCheckSucceededCondition, t.Reason, t.Message))
		toOwner, _ := s.handOver(t)
		switch asked := meta.FindStatusCondition(status.Conditions, clusterv1.MachineOwnerRemediatedCondition); {
		case toOwner && (asked == nil || asked.Status == metav1.ConditionTrue):
			set(conditions.False(clusterv1.MachineOwnerRemediatedCondition, clusterv1.MachineOwnerRemediatedWaitingForRemediationReason,
				askedMessage))
		case !toOwner:
			withdraw(status)
		}
	case health.Exempt, health.Pending, health.Undetermined:
	}
	setOlder(status)
}

// succeededCondition is the condition of a healthy Machine.
func succeededCondition() metav1.Condition {
	return conditions.True(clusterv1.MachineHealthCheckSucceededCondition, clusterv1.MachineHealthCheckSucceededReason, healthyMessage)
}

// withdraw takes back that the owner was asked, unless it has begun.
func withdraw(status *clusterv1.MachineStatus) {
	asked := meta.FindStatusCondition(status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	if asked != nil && slices.Contains(withdrawable, asked.Reason) {
		meta.RemoveStatusCondition(&status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
	}
}

// abandon removes from the status of a Machine what no policy sets any more.
func abandon(status *clusterv1.MachineStatus) {
	withdraw(status)
	meta.RemoveStatusCondition(&status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	setOlder(status)
}

// keepsFinding reports whether what was found of a Machine stays although it is judged no more: a user who inspects one that is preserved
// wants to know why it failed.
func keepsFinding(machine *clusterv1.Machine) bool {
	return machines.Preserved(machine) &&
		meta.IsStatusConditionFalse(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
}

// withdrawAll takes back that the owner was asked, for all clients.
func withdrawAll(status *clusterv1.MachineStatus) {
	withdraw(status)
	setOlder(status)
}

// setOlder sets the conditions for clients of v1beta1. Those follow from the others, so they cost no write.
//
//nolint:staticcheck // as long as upstream converts for them
func setOlder(status *clusterv1.MachineStatus) {
	older := clusterv1.MachineV1Beta1DeprecatedStatus{}
	if status.Deprecated != nil && status.Deprecated.V1Beta1 != nil {
		older = *status.Deprecated.V1Beta1
	}
	older.Conditions = conditions.ToV1Beta1(status.Conditions, older.Conditions, olderConditions...)
	if status.Deprecated == nil && equality.Semantic.DeepEqual(older, clusterv1.MachineV1Beta1DeprecatedStatus{}) {
		return
	}
	status.Deprecated = &clusterv1.MachineDeprecatedStatus{V1Beta1: &older}
}
