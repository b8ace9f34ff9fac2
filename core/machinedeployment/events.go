package machinedeployment

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reasons of the Kubernetes Events about a deployment. RollbackRevisionNotFoundReason and SelectorMismatchReason are reasons of
// events as well.
const (
	AdoptedEvent    = "Adopted"
	ReleasedEvent   = "Released"
	CreatedEvent    = "Created"
	ScaledEvent     = "Scaled"
	DeletedEvent    = "Deleted"
	RolledBackEvent = "RolledBack"
	// NameTakenEvent means that another object has the name that was chosen for a new set.
	NameTakenEvent = "NameTaken"
)

// event records what was done. related is the set or Machine that it concerns; it may be nil.
func (r *Reconciler) event(s *scope, related runtime.Object, reason, action, note string, args ...any) {
	r.Recorder.Eventf(s.Object, related, corev1.EventTypeNormal, reason, action, note, args...)
}

// warn records what needs attention.
func (r *Reconciler) warn(s *scope, related runtime.Object, reason, action, note string, args ...any) {
	r.Recorder.Eventf(s.Object, related, corev1.EventTypeWarning, reason, action, note, args...)
}
