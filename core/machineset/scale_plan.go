package machineset

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

// ScalePlan is what brings a set to its number of Machines.
type ScalePlan struct {
	// Create is how many Machines are missing.
	Create int
	// Remove are the Machines that are too many, in the order in which they go.
	Remove []*clusterv1.Machine
	// Reason reports why, for events and logs.
	Reason string
}

// PlanScale compares the Machines that exist with those that shall. A Machine counts until it is gone, also
// while it is being deleted: its replacement is created only then, so that quotas and surges are kept.
func PlanScale(set *clusterv1.MachineSet, replicas int, all []*clusterv1.Machine) ScalePlan {
	surplus := len(all) - replicas
	switch {
	case surplus < 0 && set.Annotations[clusterv1.DisableMachineCreateAnnotation] == "true":
		return ScalePlan{Reason: "creation of Machines is disabled by the annotation " + clusterv1.DisableMachineCreateAnnotation}
	case surplus < 0:
		return ScalePlan{Create: -surplus, Reason: "fewer Machines than replicas"}
	case surplus == 0:
		return ScalePlan{}
	}
	plan := ScalePlan{Reason: "more Machines than replicas"}
	// Those that are being deleted already come first, and cover a part of the surplus.
	for _, machine := range machines.ByDeletion(all, set.Spec.Deletion.Order)[:surplus] {
		if machine.DeletionTimestamp.IsZero() {
			plan.Remove = append(plan.Remove, machine)
		}
	}
	return plan
}
