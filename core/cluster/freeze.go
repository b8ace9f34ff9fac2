package cluster

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/safety/freeze"
)

// RemediationAllowedCondition of a Cluster reports whether its Machines may be replaced when they are unhealthy. MachineHealthChecks have
// a condition of that name for their own limits. It appears with the first freeze.
const RemediationAllowedCondition = clusterv1.MachineHealthCheckRemediationAllowedCondition

// reconcileFreeze reads whether something keeps Machines from being replaced, and removes the annotation by which a user ends that.
func (r *Reconciler) reconcileFreeze(_ context.Context, s *scope) outcome.Outcome {
	if r.Freezer == nil {
		return outcome.Continue()
	}
	if _, ok := s.Object.Annotations[freeze.UnfreezeAnnotation]; ok {
		s.unfreeze = true
		delete(s.Object.Annotations, freeze.UnfreezeAnnotation)
	}
	if ptr.Deref(s.Original.Status.Initialization.ControlPlaneInitialized, false) {
		r.Freezer.Count(s.Key())
	}
	s.frozen = r.Freezer.Frozen(s.Key())
	next := s.frozen.Next
	if s.frozen.Active() {
		next = s.frozen.Until
	}
	if next.IsZero() {
		return outcome.Continue()
	}
	return outcome.ContinueAfter(max(next.Sub(s.Now), 0))
}

// endFreeze ends a freeze once the annotation that requests it is removed: while it is set, it would end each later freeze too.
func (r *Reconciler) endFreeze(s *scope, refused error) {
	switch {
	case !s.unfreeze:
	case refused != nil:
		s.unfreezeRefused = refused
	default:
		r.Freezer.Dismiss(s.Key())
		s.frozen = r.Freezer.Frozen(s.Key())
	}
}

// unfreezeWarning reports that a freeze continues although a user asks for its end; "" if none does.
func (s *scope) unfreezeWarning() string {
	if s.unfreezeRefused == nil {
		return ""
	}
	return "The annotation " + freeze.UnfreezeAnnotation + " has no effect yet, since removing it is refused: " +
		persist.Refusal(s.unfreezeRefused)
}

// setRemediationAllowed sets the condition once there is something to report: a Cluster that was never frozen needs none.
func (s *scope) setRemediationAllowed() {
	known := meta.FindStatusCondition(s.Object.Status.Conditions, RemediationAllowedCondition)
	frozen := known != nil && known.Status == metav1.ConditionFalse
	switch {
	case s.frozen.Starting:
		// The condition stays as the previous core has left it.
	case s.frozen.Active() && (frozen || s.newlyFrozen()):
		s.set(conditions.False(RemediationAllowedCondition, s.frozen.Reason, together(s.frozen.Message, s.unfreezeWarning())))
	case !s.frozen.Active() && (known != nil || s.unfreezeRefused != nil):
		s.set(conditions.True(RemediationAllowedCondition, clusterv1.MachineHealthCheckRemediationAllowedReason, s.unfreezeWarning()))
	}
}

// newlyFrozen reports whether a freeze is worth a condition on a Cluster that had none: not one from before its control plane was
// there, since there was nothing to replace.
func (s *scope) newlyFrozen() bool {
	initialized := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.ClusterControlPlaneInitializedCondition)
	return initialized != nil && initialized.Status == metav1.ConditionTrue &&
		initialized.LastTransitionTime.Time.Before(s.frozen.Since)
}

// recordFreeze records events of what the condition has changed to.
func (s *scope) recordFreeze() {
	was := meta.FindStatusCondition(s.Original.Status.Conditions, RemediationAllowedCondition)
	is := meta.FindStatusCondition(s.Object.Status.Conditions, RemediationAllowedCondition)
	switch {
	case is == nil:
	case is.Status == metav1.ConditionFalse && (was == nil || was.Status != is.Status || was.Reason != is.Reason):
		s.events.Warning(RemediationFrozenEvent, "Freeze", "%s", is.Message)
	case is.Status == metav1.ConditionTrue && was != nil && was.Status != is.Status:
		s.events.Normal(RemediationResumedEvent, "Unfreeze", "Unhealthy Machines are replaced again")
	}
}
