package machines

import (
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Updating reports whether a Machine is being updated in place.
func Updating(machine *clusterv1.Machine) bool {
	_, ok := machine.Annotations[clusterv1.UpdateInProgressAnnotation]
	return ok
}

// Available reports whether a Machine serves: it is available, not being deleted, and not being updated.
func Available(machine *clusterv1.Machine) bool {
	return machine.DeletionTimestamp.IsZero() && !Updating(machine) &&
		meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineAvailableCondition)
}
