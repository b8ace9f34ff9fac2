package machines

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// AdoptedAnnotation marks a Machine that its MachineSet has not created: its bootstrap config and infrastructure machine are never
// created from the set's templates, since its creator does that. Its value is when it was adopted, as an RFC 3339 time.
const AdoptedAnnotation = "machineset.millwright.dev/adopted"

// SettlingPeriod is the time in which a Machine that was adopted, or that was restored without a status, does not count as unavailable.
const SettlingPeriod = 5 * time.Minute

// Unobserved reports whether a Machine existed before, since it was adopted or has an instance, and has no condition Available yet. Such a
// Machine must not count as unavailable.
func Unobserved(machine *clusterv1.Machine) bool {
	if !machine.DeletionTimestamp.IsZero() || meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineAvailableCondition) != nil {
		return false
	}
	_, adopted := machine.Annotations[AdoptedAnnotation]
	return adopted || machine.Spec.ProviderID != ""
}

// UnsettledUntil returns until when it is not known whether a Machine serves: SettlingPeriod from its adoption, or, as long as it is
// unobserved, from its creation. It is zero for other Machines.
func UnsettledUntil(machine *clusterv1.Machine, now time.Time) time.Time {
	if !machine.DeletionTimestamp.IsZero() || Available(machine) {
		return time.Time{}
	}
	since, err := time.Parse(time.RFC3339, machine.Annotations[AdoptedAnnotation])
	if created := machine.CreationTimestamp.Time; Unobserved(machine) && (err != nil || created.After(since)) {
		since = created
	}
	if until := since.Add(SettlingPeriod); now.Before(until) {
		return until
	}
	return time.Time{}
}
