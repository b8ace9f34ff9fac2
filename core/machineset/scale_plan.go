package machineset

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// scalePlan is what brings a set to its number of Machines.
type scalePlan struct {
	// create is how many Machines are missing.
	create int
	// remove are the Machines that are too many, in the order in which they go.
	remove []*clusterv1.Machine
	// reason says why, for events and logs.
	reason string
}

// planScale compares the Machines that exist with those that shall. A Machine counts until it is gone, also
// while it is being deleted: its replacement is created only then, so that quotas and surges are kept.
func planScale(set *clusterv1.MachineSet, replicas int, all []*clusterv1.Machine) scalePlan {
	surplus := len(all) - replicas
	switch {
	case surplus < 0 && set.Annotations[clusterv1.DisableMachineCreateAnnotation] == "true":
		return scalePlan{reason: "creation of Machines is disabled by the annotation " + clusterv1.DisableMachineCreateAnnotation}
	case surplus < 0:
		return scalePlan{create: -surplus, reason: "fewer Machines than replicas"}
	case surplus == 0:
		return scalePlan{}
	}
	plan := scalePlan{reason: "more Machines than replicas"}
	// Those that are being deleted already come first, and cover a part of the surplus.
	for _, machine := range machines.ByDeletion(all, set.Spec.Deletion.Order)[:surplus] {
		if machine.DeletionTimestamp.IsZero() {
			plan.remove = append(plan.remove, machine)
		}
	}
	return plan
}
