package machine

import (
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/external"
	"millwright.dev/core/limits"
)

// bootstrapCondition derives BootstrapConfigReady.
func (s *scope) bootstrapCondition() metav1.Condition {
	const conditionType = clusterv1.MachineBootstrapConfigReadyCondition
	done := ptr.Deref(s.Object.Status.Initialization.BootstrapDataSecretCreated, false)
	if !s.bootstrap.ref.IsDefined() {
		if !done {
			return conditions.False(
				conditionType,
				clusterv1.MachineBootstrapConfigNotReadyReason,
				"Neither spec.bootstrap.configRef nor spec.bootstrap.dataSecretName is set: set one",
			)
		}
		return conditions.True(conditionType, clusterv1.MachineBootstrapDataSecretProvidedReason, "")
	}
	awaited := "Waiting for " + external.Name(s.bootstrap.ref) + " to create the bootstrap data"
	return s.referenceCondition(conditionType, &s.bootstrap, done, awaited,
		func(o external.Object) (*metav1.Condition, string, string, error) {
			accessor := bootstrapconfig.At(o.Contract)
			return readConditions(o, accessor.Ready, accessor.Failure)
		})
}

// infrastructureCondition derives InfrastructureReady.
func (s *scope) infrastructureCondition() metav1.Condition {
	const conditionType = clusterv1.MachineInfrastructureReadyCondition
	done := ptr.Deref(s.Object.Status.Initialization.InfrastructureProvisioned, false) && !s.infrastructure.recreated
	condition := s.referenceCondition(
		conditionType,
		&s.infrastructure,
		done,
		"Waiting for "+external.Name(s.infrastructure.ref)+" to be provisioned",
		func(o external.Object) (*metav1.Condition, string, string, error) {
			accessor := inframachine.At(o.Contract)
			return readConditions(o, accessor.Ready, accessor.Failure)
		},
	)
	return s.withLeavingInfrastructure(condition)
}

// withLeavingInfrastructure reports an infrastructure machine that is being deleted under its Machine. The Machine is not deleted with it:
// the deletion of a CRD would take a whole fleet. A provider that keeps the instance reports that itself.
func (s *scope) withLeavingInfrastructure(condition metav1.Condition) metav1.Condition {
	r := &s.infrastructure
	held := condition.Reason == inframachine.WaitingForMachineDeletionReason
	if s.Deleting() || held || !r.found() || r.object.GetDeletionTimestamp() == nil {
		return condition
	}
	return conditions.False(condition.Type, ObjectBeingDeletedReason, fmt.Sprintf(
		"%s is being deleted %s, and this Machine is not: delete this Machine to drain its Node. "+
			"A provider that does not report the reason %s may terminate the instance without a drain",
		external.Name(r.ref), since(r.object.GetDeletionTimestamp().Time), inframachine.WaitingForMachineDeletionReason))
}

// referenceCondition derives the condition of a reference: why its object cannot be used, a final failure that it reports, its
// condition Ready, or the flag of the contract, in this order.
func (s *scope) referenceCondition(conditionType string, r *reference, done bool, awaited string,
	read func(external.Object) (ready *metav1.Condition, reason, message string, err error)) metav1.Condition {
	switch {
	case r.beingCreated:
		return conditions.False(conditionType, BeingCreatedReason, awaited)
	case apierrors.IsNotFound(r.err) && (r.seen || s.existed(conditionType, done)):
		return conditions.False(conditionType, clusterv1.ObjectDeletedReason, external.Name(r.ref)+" has been deleted")
	case r.err != nil:
		return external.UnusableCondition(conditionType, r.ref, r.err)
	case !r.found():
		return metav1.Condition{}
	}
	ready, reason, message, err := read(r.object)
	switch {
	case err != nil:
		return external.UnusableCondition(conditionType, r.ref, err)
	case reason != "" || message != "":
		return conditions.False(conditionType, external.ReasonOr(reason, clusterv1.NotReadyReason), message)
	}
	return external.WithMessage(external.Mirrored(conditionType, ready, done, awaited), limits.Message(external.Name(r.ref), r.invalidFields))
}

// neverSeen are the reasons of a condition that do not show that the object has ever existed.
var neverSeen = []string{
	clusterv1.ObjectDoesNotExistReason, BeingCreatedReason, clusterv1.InternalErrorReason,
	external.CRDMissingReason, external.OwnedElsewhereReason,
}

// existed reports whether an object that does not exist now has been observed before, be it by another process. NotReady is the
// reason for an object that exists, or for no reference at all, so it counts as long as the spec is as it was then.
func (s *scope) existed(conditionType string, done bool) bool {
	if done || s.Deleting() {
		return true
	}
	before := meta.FindStatusCondition(s.Original.Status.Conditions, conditionType)
	if before == nil || slices.Contains(neverSeen, before.Reason) {
		return false
	}
	return before.Reason != clusterv1.NotReadyReason || before.ObservedGeneration == s.Original.Generation
}

// readConditions reads what the condition of a reference is derived from.
func readConditions(o external.Object, ready func(*unstructured.Unstructured) (*metav1.Condition, error),
	failure func(*unstructured.Unstructured) (string, string, error)) (condition *metav1.Condition, reason, message string, err error) {
	if condition, err = ready(o.Unstructured); err != nil {
		return nil, "", "", err
	}
	reason, message, err = failure(o.Unstructured)
	return condition, reason, message, err
}
