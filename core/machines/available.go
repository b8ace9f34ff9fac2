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

// unhealthy reports whether a Machine is of less use than others: it has no Node, or its Node or its health check
// is known to fail.
func unhealthy(machine *clusterv1.Machine) bool {
	return !machine.Status.NodeRef.IsDefined() ||
		meta.IsStatusConditionFalse(machine.Status.Conditions, clusterv1.MachineNodeHealthyCondition) ||
		meta.IsStatusConditionFalse(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
}
