package machinehealth

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// MachineMarkedUnhealthyEvent is the reason of the event about a Machine that has become unhealthy, or is so for another reason.
const MachineMarkedUnhealthyEvent = "MachineMarkedUnhealthy"

// recordEvents records what a write has changed: one event when a Machine becomes unhealthy, and one when the reason is another.
func (r *Reconciler) recordEvents(w *write) {
	const kind = clusterv1.MachineHealthCheckSucceededCondition
	before, after := meta.FindStatusCondition(w.before.Status.Conditions, kind), meta.FindStatusCondition(w.after.Status.Conditions, kind)
	if after == nil || after.Status != "False" || before != nil && before.Status == after.Status && before.Reason == after.Reason {
		return
	}
	r.Recorder.Eventf(w.after, nil, corev1.EventTypeWarning, MachineMarkedUnhealthyEvent, "Judge", "%s: %s", after.Reason, after.Message)
}
