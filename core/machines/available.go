package machines

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Updating says whether a Machine is being updated in place.
func Updating(machine *clusterv1.Machine) bool {
	_, ok := machine.Annotations[clusterv1.UpdateInProgressAnnotation]
	return ok
}

// Available says whether a Machine serves: it is available, not on its way out, and not being updated.
func Available(machine *clusterv1.Machine) bool {
	return machine.DeletionTimestamp.IsZero() && !Updating(machine) &&
		meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineAvailableCondition)
}

// Serving counts the Machines that are ready, and that are available. One that is being updated in place counts as neither,
// whether it says so itself yet or not.
func Serving(machines []*clusterv1.Machine) (ready, available int32) {
	for _, machine := range machines {
		if Updating(machine) {
			continue
		}
		if meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineReadyCondition) {
			ready++
		}
		if meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineAvailableCondition) {
			available++
		}
	}
	return ready, available
}

// Counted says whether the numbers in the status of a set, where it tells any, are those of these Machines.
func Counted(set *clusterv1.MachineSet, machines []*clusterv1.Machine) bool {
	ready, available := Serving(machines)
	number := int32(len(machines))
	return ptr.Deref(set.Status.Replicas, number) == number && ptr.Deref(set.Status.ReadyReplicas, ready) == ready &&
		ptr.Deref(set.Status.AvailableReplicas, available) == available
}
