package machinedeployment

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// Reasons of the Kubernetes Events about a deployment. RollbackRevisionNotFoundReason and SelectorMismatchReason are reasons of
// events as well.
const (
	// AdoptedEvent means that a MachineSet that had no controller belongs to the deployment now.
	AdoptedEvent = "Adopted"
	// ReleasedEvent means that a MachineSet is the deployment's no more; the note has why.
	ReleasedEvent = "Released"
	// CreatedEvent means that a MachineSet was created.
	CreatedEvent = "Created"
	// ScaledEvent means that the replicas of a MachineSet were changed; the note has from how many, to how many and why.
	ScaledEvent = "Scaled"
	// DeletedEvent means that a MachineSet or Machine was deleted; the note has why.
	DeletedEvent = "Deleted"
	// RolledBackEvent means that the template is that of an earlier revision again.
	RolledBackEvent = "RolledBack"
	// RewrittenEvent means that the API server has stored a set with other labels, or another owner, than were sent.
	RewrittenEvent = "Rewritten"
	// TooManyCreatedEvent means that there are more sets than the deployment needs, and that it creates no more.
	TooManyCreatedEvent = "TooManyCreated"
	// InvalidSpecEvent means that nothing is created, since the spec is invalid.
	InvalidSpecEvent = "InvalidSpec"
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
