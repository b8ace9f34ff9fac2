package machine

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/external"
)

// Reasons of events that are no reasons of conditions. Some are those of other controllers.
const (
	// BootstrapDataReadyEvent means that the bootstrap data exist, for a Machine that has waited for them.
	BootstrapDataReadyEvent = "BootstrapDataReady"
	// InfrastructureProvisionedEvent means that the infrastructure is provisioned, for a Machine that has waited for it.
	InfrastructureProvisionedEvent = "InfrastructureProvisioned"
	// NodeLinkedEvent means that the Node has joined and is known as the Machine's.
	NodeLinkedEvent = "SuccessfulSetNodeRef"
	// NodeReplacedEvent means that another Node has the provider ID of the Machine now.
	NodeReplacedEvent = "NodeReplaced"
	// ProviderFailedEvent means that a provider of the older contract reports a failure that it cannot recover from.
	ProviderFailedEvent = "ProviderFailed"
	// ProviderIDContestedEvent is on a Machine that keeps its Node while the infrastructure of another one reports the same provider
	// ID.
	ProviderIDContestedEvent = "ProviderIDContested"
	// NodeClaimRefusedEvent is about Nodes that claim the provider ID of a Machine and are not accepted as its Node.
	NodeClaimRefusedEvent = "NodeClaimRefused"
	// NodeDrainedEvent means that a drain is over that has taken long.
	NodeDrainedEvent = "SuccessfulDrainNode"
	// DrainForcedEvent means that a drain has become a forced one; the note has the cause.
	DrainForcedEvent = "DrainForced"
	// DrainSkippedEvent means that a Node is not drained, since its cluster is being deleted and does not answer.
	DrainSkippedEvent = "DrainSkipped"
	// InvalidDrainRuleEvent is on a MachineDrainRule that is invalid and has no effect.
	InvalidDrainRuleEvent = "InvalidDrainRule"
	// VolumeDetachTimedOutEvent means that volumes were attached for too long and are not waited for any more.
	VolumeDetachTimedOutEvent = "VolumeDetachTimedOut"
	// NodeDeletionTimedOutEvent means that the Node could not be deleted in time and is left behind.
	NodeDeletionTimedOutEvent = "NodeDeletionTimedOut"
	// NodesLeftEvent means that several Nodes claim the provider ID of the Machine, and none is known to be its.
	NodesLeftEvent = "NodesLeftBehind"
	// DeletedEvent means that nothing is left of the Machine.
	DeletedEvent = "SuccessfulDelete"
)

// warningReasons are the reasons of conditions that need attention: that a condition comes to have one of them is an event too. The
// ordinary life of a Machine is in its conditions; recordProgressEvents decides what of it is an event too.
var warningReasons = map[string]map[string]bool{
	clusterv1.MachineBootstrapConfigReadyCondition: referenceWarningReasons,
	clusterv1.MachineInfrastructureReadyCondition:  referenceWarningReasons,
	clusterv1.MachineNodeHealthyCondition: {
		clusterv1.MachineNodeDeletedReason: true, clusterv1.MachineNodeInternalErrorReason: true, NodeSyncFailedReason: true,
		NodeOfAnotherMachineReason: true,
	},
	clusterv1.MachineUpdatingCondition: {clusterv1.MachineInPlaceUpdateFailedReason: true},
}

var referenceWarningReasons = map[string]bool{
	clusterv1.ObjectDeletedReason: true, clusterv1.ObjectDoesNotExistReason: true, clusterv1.InvalidConditionReportedReason: true,
	external.CRDMissingReason: true, external.OwnedElsewhereReason: true, ObjectBeingDeletedReason: true,
	inframachine.WaitingForMachineDeletionReason: true,
}

// recordConditionEvents records an event for each condition that has come to have a warning reason, and for a terminal failure.
func (s *scope) recordConditionEvents() {
	if s.Deleting() || s.paused() {
		return
	}
	for _, condition := range s.Object.Status.Conditions {
		if warningReasons[condition.Type][condition.Reason] && reasonOf(s.Original.Status.Conditions, condition.Type) != condition.Reason {
			s.events.Warning(condition.Reason, "Inspect", "%s: %s", condition.Type, condition.Message)
			if condition.Reason == clusterv1.MachineInPlaceUpdateFailedReason {
				inPlaceUpdatesNotPerformed.Inc()
			}
		}
	}
	s.recordClaimEvents()
	if message := failureMessage(s.Object); message != "" && message != failureMessage(s.Original) && s.infrastructure.found() {
		s.events.Warning(ProviderFailedEvent, "Inspect", "%s", message)
	}
}

// recordClaimEvents records an event for each new claim to the provider ID.
func (s *scope) recordClaimEvents() {
	before := messageOf(s.Original.Status.Conditions, clusterv1.MachineNodeReadyCondition)
	for reason, note := range map[string]string{ProviderIDContestedEvent: s.identity.contested, NodeClaimRefusedEvent: s.identity.refused} {
		if note != "" && !strings.Contains(before, note) {
			s.events.Warning(reason, "Identify", "%s", note)
		}
	}
}

func messageOf(list []metav1.Condition, conditionType string) string {
	if found := meta.FindStatusCondition(list, conditionType); found != nil {
		return found.Message
	}
	return ""
}

func reasonOf(list []metav1.Condition, conditionType string) string {
	if found := meta.FindStatusCondition(list, conditionType); found != nil {
		return found.Reason
	}
	return ""
}
