package machineset

import (
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reasons of the Kubernetes Events about a set.
const (
	createdEvent  = "Created"
	deletedEvent  = "Deleted"
	adoptedEvent  = "Adopted"
	releasedEvent = "Released"
	// adoptionRefusedEvent means that an instance that is to be adopted has another object.
	adoptionRefusedEvent = "AdoptionRefused"
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
