package controller

import (
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/persist"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// Reasons of events on an identity.
const (
	// unusableEvent: the identity cannot be used any more, or from the beginning.
	unusableEvent = "IdentityUnusable"
	// inUseEvent: the identity is being deleted and machines use it.
	inUseEvent = "IdentityInUse"
)

// record records the events of what has changed, if it was written, and the metrics.
func (r *Reconciler[I]) record(s *scope[I], writeErr error) {
	if writeErr != nil && persist.Refusal(writeErr) == "" {
		return
	}
	after := s.Object.CommonStatus()
	if writeErr == nil && !s.Gone {
		before := s.Original.CommonStatus()
		s.addChange(before, after, driverv1.IdentityReadyCondition, metav1.ConditionFalse, unusableEvent)
		s.addChange(before, after, driverv1.IdentityInUseCondition, metav1.ConditionTrue, inUseEvent)
		value := 0.0
		if meta.IsStatusConditionTrue(after.Conditions, driverv1.IdentityReadyCondition) {
			value = 1
		}
		ready.WithLabelValues(r.Kind, s.Object.GetName()).Set(value)
	}
	s.events.Record(r.Recorder, s.Object)
}

// addChange adds an event if a condition has come to a status, or to another reason for it.
func (s *scope[I]) addChange(before, after *driverv1.IdentityStatus, conditionType string, bad metav1.ConditionStatus, event string) {
	was, is := meta.FindStatusCondition(before.Conditions, conditionType), meta.FindStatusCondition(after.Conditions, conditionType)
	if is == nil || is.Status != bad || was != nil && was.Status == bad && was.Reason == is.Reason {
		return
	}
	s.events.Warning(event, "CheckIdentity", "%s: %s", is.Reason, is.Message)
}
