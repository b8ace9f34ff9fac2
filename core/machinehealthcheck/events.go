package machinehealthcheck

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/tools/events"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// RemediationRestrictedEvent is the reason of the event about a MachineHealthCheck whose limits, spec or template have stopped
// remediation.
const RemediationRestrictedEvent = "RemediationRestricted"

// recordEvents records once that remediation has stopped. The numbers in the message, which change, are in the condition.
func (s *scope) recordEvents(recorder events.EventRecorder) {
	const kind = clusterv1.MachineHealthCheckRemediationAllowedCondition
	before, after := meta.FindStatusCondition(s.Original.Status.Conditions, kind), meta.FindStatusCondition(s.Object.Status.Conditions, kind)
	if after == nil || after.Status != "False" && after.Reason != NodesUnreadableReason ||
		before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return
	}
	recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, RemediationRestrictedEvent, "Judge", "%s: %s", after.Reason, after.Message)
}
