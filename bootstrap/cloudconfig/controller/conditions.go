package controller

import (
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/paused"
	"millwright.dev/contracts/controller/persist"
)

// explain derives from a failed call what the conditions report.
func (s *scope) explain(err error) {
	switch {
	case err == nil || s.wait != nil:
	case inManagement(err) && persist.Refusal(err) != "":
		s.awaits(bootstrapv1.RefusedByAPIServerReason, err.Error())
	case collides(err):
		s.awaits(bootstrapv1.ForeignObjectReason, err.Error())
	case apierrors.IsForbidden(err) || apierrors.IsInvalid(err) || persist.Denied(err):
		// An admission policy denies with 422, unless it sets another status; a webhook with whatever it likes.
		s.awaits(bootstrapv1.TargetForbiddenReason, err.Error())
	default:
		s.awaits(bootstrapv1.InternalErrorReason, err.Error()+"; retried with backoff")
	}
}

// managementError is the error of a write to the management cluster: if that is refused, the target cluster has nothing to do with it.
type managementError struct{ error }

// Unwrap implements errors.Unwrap.
func (e *managementError) Unwrap() error { return e.error }

// ofManagement marks the error of a write to the management cluster.
func ofManagement(err error) error {
	if err == nil {
		return nil
	}
	return &managementError{err}
}

func inManagement(err error) bool {
	var marked *managementError
	return errors.As(err, &marked)
}

func (s *scope) paused() bool { return len(s.pausedBy()) > 0 }

// pausedBy is what pauses the CloudConfig. Pausing stops everything, also
// the extension of bootstrap tokens: a Cluster that is being moved must not be written to from here.
func (s *scope) pausedBy() []string { return paused.By(s.Original, s.cluster) }

// setStatus brings the status in line with what the steps have observed.
func (s *scope) setStatus() {
	s.Object.Status.ObservedGeneration = s.Object.Generation
	for _, c := range s.conditions() {
		conditions.Set(&s.Object.Status.Conditions, c, s.Object.Generation, s.Now)
	}
}

// conditions are those that the reconcile sets; others stay as they are.
func (s *scope) conditions() []metav1.Condition {
	notPaused := paused.Condition(nil)
	switch {
	case s.paused():
		return []metav1.Condition{paused.Condition(s.pausedBy())}
	case s.Deleting():
		return []metav1.Condition{notPaused, deleting(s)}
	}
	data, synced, tokens := dataSecretAvailable(s), nodeSecretSynced(s), tokensValid(s)
	all := []metav1.Condition{notPaused, data, synced, tokens, ready(s, data, synced, tokens)}
	if joined := nodeJoined(s); joined != nil {
		all = append(all, *joined)
	}
	return all
}

// dataSecretAvailable stays true once the user data was published, unless it is lost while needed.
func dataSecretAvailable(s *scope) metav1.Condition {
	const kind = bootstrapv1.DataSecretAvailableCondition
	switch {
	case s.dataSecretLost:
		return conditions.False(kind, bootstrapv1.DataSecretLostReason, fmt.Sprintf(
			"Secret %s is gone, and the token in it with it; unless the machine has booted, replace Machine %s",
			s.Object.Status.DataSecretName, s.machine.Name))
	case s.published || s.Object.Status.DataSecretName != "":
		return conditions.True(kind, bootstrapv1.AvailableReason, "")
	case s.wait != nil:
		return conditions.False(kind, s.wait.reason, s.wait.message)
	}
	return conditions.False(kind, bootstrapv1.WaitingForDataSecretReason, "Waiting for the user data to be created")
}

func nodeSecretSynced(s *scope) metav1.Condition {
	const kind = bootstrapv1.NodeSecretSyncedCondition
	switch {
	case s.synced:
		return conditions.True(kind, bootstrapv1.SyncedReason, "")
	case s.wait != nil:
		return conditions.False(kind, s.wait.reason, s.wait.message)
	}
	return conditions.False(kind, bootstrapv1.WaitingForDataSecretReason, "Waiting for the user data to be created")
}

func tokensValid(s *scope) metav1.Condition {
	const kind = bootstrapv1.BootstrapTokenValidCondition
	switch {
	case s.synced && s.joined():
		return conditions.True(kind, bootstrapv1.NotNeededReason, "")
	case s.tokensValid:
		return conditions.True(kind, bootstrapv1.ValidReason, "")
	case s.wait != nil:
		return conditions.False(kind, s.wait.reason, s.wait.message)
	}
	return conditions.False(kind, bootstrapv1.WaitingForDataSecretReason, "Waiting for the user data to be created")
}

// ready is true when the others are; otherwise it repeats the first that is not. That the node's Secret
// awaits the provider ID does not count: everything has been done that the infrastructure waits for, and
// a Machine that showed its bootstrap config as unready then would point at the wrong object.
func ready(s *scope, others ...metav1.Condition) metav1.Condition {
	const kind = bootstrapv1.ReadyCondition
	if s.machine != nil && s.linkedElsewhere() != "" {
		return conditions.False(kind, bootstrapv1.NodeNameMismatchReason, fmt.Sprintf(
			"Machine %s is linked with Node %s, but its Node is named %s: find out who registered Node %[2]s and delete it",
			s.machine.Name, s.linkedElsewhere(), s.node()))
	}
	for _, c := range others {
		if c.Status != metav1.ConditionTrue && c.Reason != bootstrapv1.WaitingForProviderIDReason {
			return conditions.False(kind, c.Reason, c.Message)
		}
	}
	return conditions.True(kind, bootstrapv1.ReadyReason, "")
}

// deleting is Ready while the CloudConfig is deleted: what the deletion awaits.
func deleting(s *scope) metav1.Condition {
	message := "Removing what was created for the machine in the target cluster"
	if s.wait != nil {
		message = s.wait.message
	}
	return conditions.False(bootstrapv1.ReadyCondition, bootstrapv1.DeletingReason, message)
}
