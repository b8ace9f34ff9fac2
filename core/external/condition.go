package external

import (
	"errors"
	"regexp"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/field"
	"millwright.dev/contracts/version"
)

// Reasons of conditions about a referenced object, beside those of the Cluster API.
const (
	// CRDMissingReason means that the kind of a reference is not installed, implements no known contract, or does not serve the version that
	// its label names.
	CRDMissingReason = "CRDMissing"
	// OwnedElsewhereReason means that the object of a reference is controlled by something else.
	OwnedElsewhereReason = "OwnedElsewhere"
)

// validReason is what the API allows as the reason of a condition.
var validReason = regexp.MustCompile(`^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$`)

// maxReason is the length that the API allows for the reason of a condition.
const maxReason = 1024

// Expected reports whether the error describes a state that an event will end, rather than a failure.
func Expected(err error) bool {
	var (
		noCRD      *version.NoCRDError
		noContract *version.NoContractError
		notSynced  *NotSyncedError
		elsewhere  *OwnedElsewhereError
		wrongType  *field.TypeError
		wrongCond  *field.ConditionError
	)
	return errors.As(err, &noCRD) || errors.As(err, &noContract) || errors.As(err, &notSynced) || errors.As(err, &elsewhere) ||
		errors.As(err, &wrongType) || errors.As(err, &wrongCond) || apierrors.IsNotFound(err) || NotServed(err)
}

// NotInstalled reports whether the kind of a reference does not exist, so that no object of it can.
func NotInstalled(err error) bool {
	var noCRD *version.NoCRDError
	return errors.As(err, &noCRD)
}

// NotSynced reports whether the error only means that a kind is being read for the first time and that it is too
// early to report it. Then nothing is known, and nothing should be derived.
func NotSynced(err error) bool {
	var notSynced *NotSyncedError
	return errors.As(err, &notSynced) && !notSynced.Overdue
}

// BeingRead reports whether the error means that the objects of a kind have not been read yet, however long that takes:
// nothing is known of any of them.
func BeingRead(err error) bool {
	var notSynced *NotSyncedError
	return errors.As(err, &notSynced)
}

// UnusableCondition is the condition of that type for a reference whose object cannot be used.
func UnusableCondition(conditionType string, ref clusterv1.ContractVersionedObjectReference, err error) metav1.Condition {
	var (
		noContract *version.NoContractError
		notSynced  *NotSyncedError
		elsewhere  *OwnedElsewhereError
		wrongType  *field.TypeError
		wrongCond  *field.ConditionError
	)
	switch {
	case NotInstalled(err), errors.As(err, &noContract):
		return conditions.False(conditionType, CRDMissingReason, err.Error())
	case NotServed(err):
		return conditions.Unknown(conditionType, CRDMissingReason, err.Error())
	case errors.As(err, &elsewhere):
		return conditions.False(conditionType, OwnedElsewhereReason, err.Error())
	case errors.As(err, &notSynced):
		return conditions.Unknown(conditionType, clusterv1.InternalErrorReason, err.Error())
	case errors.As(err, &wrongType), errors.As(err, &wrongCond):
		return conditions.Unknown(conditionType, clusterv1.InvalidConditionReportedReason, err.Error())
	case apierrors.IsNotFound(err):
		return conditions.False(
			conditionType,
			clusterv1.ObjectDoesNotExistReason,
			Name(ref)+" does not exist: create it or correct the reference",
		)
	}
	return conditions.Unknown(conditionType, clusterv1.InternalErrorReason, Name(ref)+" cannot be read or owned: "+err.Error())
}

// Mirrored turns the condition of a provider's object into one of that type on the object that refers to it.
// Without one the flag of the contract decides: True when done, else False with what is awaited.
func Mirrored(conditionType string, from *metav1.Condition, done bool, awaited string) metav1.Condition {
	switch {
	case from != nil:
		reason := ReasonOr(from.Reason, fallbackReason(from.Status))
		return metav1.Condition{Type: conditionType, Status: from.Status, Reason: reason, Message: conditions.Message(from.Message)}
	case done:
		return conditions.True(conditionType, clusterv1.ReadyReason, "")
	}
	return conditions.False(conditionType, clusterv1.NotReadyReason, awaited)
}

// WithMessage puts a message, if there is one, before that of the condition.
func WithMessage(condition metav1.Condition, message string) metav1.Condition {
	if message != "" && condition.Message != "" {
		message += "\n"
	}
	condition.Message = conditions.Message(message + condition.Message)
	return condition
}

// ReasonOr returns the reason if the API allows it, and another otherwise.
func ReasonOr(reason, otherwise string) string {
	if len(reason) <= maxReason && validReason.MatchString(reason) {
		return reason
	}
	return otherwise
}

func fallbackReason(status metav1.ConditionStatus) string {
	switch status {
	case metav1.ConditionTrue:
		return clusterv1.ReadyReason
	case metav1.ConditionFalse:
		return clusterv1.NotReadyReason
	}
	return clusterv1.ReadyUnknownReason
}

// Name names a referenced object for messages.
func Name(ref clusterv1.ContractVersionedObjectReference) string { return ref.Kind + " " + ref.Name }
