package machine

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/external"
)

// Reasons of events that are no conditions' reasons.
const (
	// ReasonNodeReplaced means that another Node has the provider ID of the Machine now.
	ReasonNodeReplaced = "NodeReplaced"
	// ReasonProviderFailed means that a provider of the older contract reports a failure that it cannot recover from.
	ReasonProviderFailed = "ProviderFailed"
)

// problems are the reasons of conditions that call for somebody: that a condition comes to have one of them is reported by
// an event. What a Machine goes through in an ordinary life is in its conditions; recordProgressEvents says what is an event too.
var problems = map[string]map[string]bool{
	clusterv1.MachineBootstrapConfigReadyCondition: referenceProblems,
	clusterv1.MachineInfrastructureReadyCondition:  referenceProblems,
	clusterv1.MachineNodeHealthyCondition: {
		clusterv1.MachineNodeDeletedReason: true, clusterv1.MachineNodeInternalErrorReason: true, ReasonNodeSyncFailed: true,
		ReasonNodeOfAnotherMachine: true,
	},
}

var referenceProblems = map[string]bool{
	clusterv1.ObjectDeletedReason: true, clusterv1.ObjectDoesNotExistReason: true, clusterv1.InvalidConditionReportedReason: true,
	external.ReasonCRDMissing: true, external.ReasonOwnedElsewhere: true,
}

// recordProblemEvents records an event for each condition that has come to name a problem, and for a terminal failure.
func (s *scope) recordProblemEvents() {
	if s.deleting() || s.paused() {
		return
	}
	for _, condition := range s.machine.Status.Conditions {
		if problems[condition.Type][condition.Reason] && reasonOf(s.original.Status.Conditions, condition.Type) != condition.Reason {
			s.recordEvent(corev1.EventTypeWarning, condition.Reason, "Inspect", condition.Type+": "+condition.Message)
		}
	}
	s.recordClaimEvents()
	if message := failureMessage(s.machine); message != "" && message != failureMessage(s.original) && s.infrastructure.found() {
		s.recordEvent(corev1.EventTypeWarning, ReasonProviderFailed, "Inspect", message)
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

// sendEvents emits the events that the steps left, now that what they are about is written.
func (r *Reconciler) sendEvents(s *scope) {
	for _, event := range s.events {
		r.Recorder.Eventf(s.machine, nil, event.kind, event.reason, event.action, "%s", event.note)
	}
}
