package machineset

import (
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reasons of the Kubernetes Events about a set.
const (
	// createdEvent means that Machines were created; the note has why, and their names.
	createdEvent = "Created"
	// deletedEvent means that Machines were deleted; the note has why, and their names.
	deletedEvent = "Deleted"
	// deletionRejectedEvent means that the API server rejects the deletion of Machines; the note has its words.
	deletionRejectedEvent = "DeletionRejected"
	// adoptedEvent means that a Machine that had no controller belongs to the set now.
	adoptedEvent = "Adopted"
	// releasedEvent means that a Machine is the set's no more; the note has why. It is a warning, since the Machine stays.
	releasedEvent = "Released"
	// rewrittenEvent means that the API server has stored a Machine with other labels, or another owner, than were sent.
	rewrittenEvent = "Rewritten"
	// tooManyEvent means that the set, or its deployment, has created more Machines than it needs, and creates no more.
	tooManyEvent = "TooManyCreated"
	// invalidSpecEvent means that nothing is created, since the spec is invalid.
	invalidSpecEvent = "InvalidSpec"
	// adoptionRefusedEvent means that an instance that is to be adopted has another object.
	adoptionRefusedEvent = "AdoptionRefused"
	// remediationBlockedEvent means that a set holds up replacements for a reason that was not there before.
	remediationBlockedEvent = "RemediationBlocked"
	// preservedEvent means that a Machine is kept for inspection, and is the set's no more.
	preservedEvent = "Preserved"
	// preservationEndedEvent means that a Machine that was kept is one too many.
	preservationEndedEvent = "PreservationEnded"
)

// event records an event about the set.
func (r *Reconciler) event(s *scope, reason, action, note string, args ...any) {
	r.Recorder.Eventf(s.Object, nil, corev1.EventTypeNormal, reason, action, note, args...)
}

// eventAbout records an event about the set and one of its Machines.
func (r *Reconciler) eventAbout(s *scope, machine *clusterv1.Machine, reason, action, note string, args ...any) {
	r.Recorder.Eventf(s.Object, machine, corev1.EventTypeNormal, reason, action, note, args...)
}

// warn records a warning about the set.
func (r *Reconciler) warn(s *scope, reason, action, note string, args ...any) {
	r.Recorder.Eventf(s.Object, nil, corev1.EventTypeWarning, reason, action, note, args...)
}
