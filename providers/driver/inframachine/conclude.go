package inframachine

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// conclude brings the status in line with what the steps found out. It depends on nothing else, and
// changes nothing when there is nothing new.
func conclude(status *driverv1.MachineStatus, f facts, generation int64, now metav1.Time) {
	set := func(conditionType string, value bool, why reasoned) {
		state := metav1.ConditionFalse
		if value {
			state = metav1.ConditionTrue
		}
		meta.SetStatusCondition(&status.Conditions, metav1.Condition{
			Type: conditionType, Status: state, Reason: why.reason, Message: why.message,
			ObservedGeneration: generation, LastTransitionTime: now,
		})
	}
	status.ObservedGeneration = generation
	if f.paused {
		set(driverv1.PausedCondition, true, reasoned{driverv1.PausedReason,
			"The Cluster has spec.paused or this object the annotation cluster.x-k8s.io/paused"})
		return
	}
	set(driverv1.PausedCondition, false, reasoned{reason: driverv1.NotPausedReason})

	concludeInstance(status, f)
	running := f.failure == nil && f.standing != nil && f.standing.reason == driverv1.InstanceRunningReason
	why := f.standing
	if f.failure != nil {
		why = f.failure
		status.FailureReason, status.FailureMessage = &why.reason, &why.message
	}
	if why == nil {
		return
	}
	if running && !f.deleting {
		provisioned := true
		status.Ready, status.Initialization.Provisioned = true, &provisioned
		set(driverv1.InstanceProvisionedCondition, true, *why)
	} else if !f.deleting && !status.IsProvisioned() {
		set(driverv1.InstanceProvisionedCondition, false, *why)
	}
	set(driverv1.ReadyCondition, running && !f.deleting, *why)
}

// concludeInstance copies what the cloud says of the instance. Addresses, once known, stay while an
// ending instance loses them: they tell a person which machine it was.
func concludeInstance(status *driverv1.MachineStatus, f facts) {
	if f.missing {
		status.InstanceState = driverv1.InstanceMissing
	}
	i := f.observed
	if i == nil || f.missing {
		return
	}
	status.InstanceID = i.ID
	status.InstanceState = i.State
	if i.FailureDomain != "" {
		status.FailureDomain = i.FailureDomain
	}
	if i.Interruptible && (status.Interruptible == nil || !*status.Interruptible) {
		interruptible := true
		status.Interruptible = &interruptible
	}
	if len(i.Addresses) > 0 {
		status.Addresses = slices.Clone(i.Addresses)
	}
}
