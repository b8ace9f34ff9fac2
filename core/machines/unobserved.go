package machines

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// AdoptedAnnotation marks a Machine that its MachineSet has not created: its bootstrap config and infrastructure machine are never
// created from the set's templates, since its creator does that. Its value is when it was adopted, as an RFC 3339 time.
const AdoptedAnnotation = "machineset.millwright.dev/adopted"

// SettlingPeriod is the time in which an adopted Machine does not count as unavailable: it may come from a backup, and have no status yet.
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

// UnsettledUntil returns the end of the SettlingPeriod of a Machine that is not available. It is zero for other Machines.
func UnsettledUntil(machine *clusterv1.Machine, now time.Time) time.Time {
	at, err := time.Parse(time.RFC3339, machine.Annotations[AdoptedAnnotation])
	if err != nil || !machine.DeletionTimestamp.IsZero() || Available(machine) || !now.Before(at.Add(SettlingPeriod)) {
		return time.Time{}
	}
	return at.Add(SettlingPeriod)
}
