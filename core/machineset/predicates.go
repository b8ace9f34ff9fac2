package machineset

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/overshoot"
)

// setChanged passes all events of sets except updates of the status alone, which are our own writes.
func setChanged() predicate.Predicate {
	return predicates.Changes[client.Object](predicates.NotOnlyStatus)
}

// makesRoom passes changes of a set that may let others replace Machines: of its number of Machines, and of what it replaces.
func makesRoom() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.MachineSet) bool {
		return ptr.Deref(before.Spec.Replicas, 0) != ptr.Deref(after.Spec.Replicas, 0) ||
			annotationsDiffer(before, after, remediation.ReplacingAnnotation)
	})
}

// clusterChanged passes events that matter to sets: a Cluster that is created, deleted, paused or unpaused, or that gets
// another control plane or another version.
func clusterChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.Cluster) bool {
		return predicates.Paused(before, after) ||
			before.Spec.ControlPlaneRef != after.Spec.ControlPlaneRef ||
			before.Spec.Topology.Version != after.Spec.Topology.Version ||
			upgradeStep(before) != upgradeStep(after) ||
			annotationsDiffer(before, after, remediation.MaxInFlightAnnotation, remediation.StopAboveAnnotation)
	})
}

// deploymentChanged passes events that matter to the sets of a deployment: all changes of its spec, and of its revision.
func deploymentChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.MachineDeployment) bool {
		return before.Generation != after.Generation ||
			before.Labels[overshoot.FrozenLabel] != after.Labels[overshoot.FrozenLabel] ||
			annotationsDiffer(before, after, clusterv1.RevisionAnnotation, overshoot.FrozenBecauseAnnotation,
				remediation.MaxRetryAnnotation, remediation.RetryPeriodAnnotation, remediation.MinHealthyPeriodAnnotation)
	})
}

// annotationsDiffer reports whether one of the annotations has changed.
func annotationsDiffer(before, after client.Object, keys ...string) bool {
	return slices.ContainsFunc(keys, func(key string) bool {
		old, had := before.GetAnnotations()[key]
		young, has := after.GetAnnotations()[key]
		return had != has || old != young
	})
}

// machineChanged reports whether a change of a Machine can matter to its set.
func machineChanged(before, after *clusterv1.Machine) bool {
	return before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Status.NodeRef.IsDefined() != after.Status.NodeRef.IsDefined() ||
		!equality.Semantic.DeepEqual(before.Status.NodeInfo, after.Status.NodeInfo) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		slices.ContainsFunc(watchedConditions, func(kind string) bool { return conditionChanged(before, after, kind) })
}

// watchedConditions are the conditions of Machines that the status of a set, or the choice of Machines to
// delete, depends on.
var watchedConditions = []string{
	clusterv1.MachineReadyCondition,
	clusterv1.MachineAvailableCondition,
	clusterv1.MachineUpToDateCondition,
	clusterv1.MachineNodeHealthyCondition,
	clusterv1.MachineHealthCheckSucceededCondition,
	clusterv1.MachineOwnerRemediatedCondition,
}

func conditionChanged(before, after *clusterv1.Machine, kind string) bool {
	a, b := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)
	if a == nil || b == nil {
		return a != b
	}
	return a.Status != b.Status || a.Reason != b.Reason || a.Message != b.Message
}
