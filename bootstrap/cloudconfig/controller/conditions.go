package controller

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/pkg/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
)

// explain turns a failed call into what the conditions say, and returns the error for the retry.
func (s *scope) explain(err error) error {
	switch {
	case err == nil:
		return nil
	case collides(err):
		s.awaits(bootstrapv1.ForeignObjectReason, err.Error())
	case apierrors.IsForbidden(errors.Cause(err)) || apierrors.IsInvalid(errors.Cause(err)):
		// An admission policy denies with 422, unless it says otherwise.
		s.awaits(bootstrapv1.TargetForbiddenReason, err.Error())
	default:
		s.awaits(bootstrapv1.InternalErrorReason, err.Error()+"; it is tried again")
	}
	return err
}

// conclude says what a reconcile has reached and what it awaits.
func conclude(s *scope) []metav1.Condition {
	data, synced, tokens := dataSecretAvailable(s), nodeSecretSynced(s), tokensValid(s)
	all := ready(data, synced, tokens)
	if s.machine != nil && s.linkedElsewhere() != "" {
		all = isFalse(bootstrapv1.ReadyCondition, bootstrapv1.NodeNameMismatchReason, fmt.Sprintf(
			"Machine %s is linked with Node %s, but its Node is named %s: find out who registered Node %[2]s and delete it",
			s.machine.Name, s.linkedElsewhere(), s.node()))
	}
	conditions := []metav1.Condition{notPaused(), data, synced, tokens, all}
	if joined := nodeJoined(s); joined != nil {
		conditions = append(conditions, *joined)
	}
	return conditions
}

func isTrue(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionTrue, Reason: reason, Message: message}
}

func isFalse(kind, reason, message string) metav1.Condition {
	return metav1.Condition{Type: kind, Status: metav1.ConditionFalse, Reason: reason, Message: message}
}

// dataSecretAvailable stays true once the user data was published, unless it is lost while needed.
func dataSecretAvailable(s *scope) metav1.Condition {
	const kind = bootstrapv1.DataSecretAvailableCondition
	switch {
	case s.dataSecretLost:
		return isFalse(kind, bootstrapv1.DataSecretLostReason, fmt.Sprintf(
			"Secret %s is gone, and the token in it with it; unless the machine has booted, replace Machine %s",
			s.config.Status.DataSecretName, s.machine.Name))
	case s.published || s.config.Status.DataSecretName != "":
		return isTrue(kind, bootstrapv1.AvailableReason, "")
	case s.wait != nil:
		return isFalse(kind, s.wait.reason, s.wait.message)
	}
	return isFalse(kind, bootstrapv1.WaitingForDataSecretReason, "the user data was not made yet")
}

func nodeSecretSynced(s *scope) metav1.Condition {
	const kind = bootstrapv1.NodeSecretSyncedCondition
	switch {
	case s.synced:
		return isTrue(kind, bootstrapv1.SyncedReason, "")
	case s.wait != nil:
		return isFalse(kind, s.wait.reason, s.wait.message)
	}
	return isFalse(kind, bootstrapv1.WaitingForDataSecretReason, "the user data comes first")
}

func tokensValid(s *scope) metav1.Condition {
	const kind = bootstrapv1.BootstrapTokenValidCondition
	switch {
	case s.synced && s.joined():
		return isTrue(kind, bootstrapv1.NotNeededReason, "")
	case s.tokensValid:
		return isTrue(kind, bootstrapv1.ValidReason, "")
	case s.wait != nil:
		return isFalse(kind, s.wait.reason, s.wait.message)
	}
	return isFalse(kind, bootstrapv1.WaitingForDataSecretReason, "the user data comes first")
}

// ready is true when the others are; otherwise it repeats the first that is not. That the node's Secret
// awaits the provider ID does not count: everything has been done that the infrastructure waits for, and
// a Machine that showed its bootstrap config as unready then would point at the wrong object.
func ready(others ...metav1.Condition) metav1.Condition {
	for _, c := range others {
		if c.Status != metav1.ConditionTrue && c.Reason != bootstrapv1.WaitingForProviderIDReason {
			return isFalse(bootstrapv1.ReadyCondition, c.Reason, c.Message)
		}
	}
	return isTrue(bootstrapv1.ReadyCondition, bootstrapv1.ReadyReason, "")
}

func notPaused() metav1.Condition {
	return isFalse(bootstrapv1.PausedCondition, clusterv1.NotPausedReason, "")
}

// pausedConditions says that nothing is done; the other conditions stay as they are.
func pausedConditions(_ *scope, why string) []metav1.Condition {
	return []metav1.Condition{isTrue(bootstrapv1.PausedCondition, clusterv1.PausedReason, why)}
}

// deletingConditions says what the deletion awaits.
func deletingConditions(s *scope) []metav1.Condition {
	message := "what was made for the machine is being removed"
	if s.wait != nil {
		message = s.wait.message
	}
	return []metav1.Condition{notPaused(), isFalse(bootstrapv1.ReadyCondition, bootstrapv1.DeletingReason, message)}
}
