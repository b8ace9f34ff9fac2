package machinehealth

import (
	"maps"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/health"
)

// derived are the conditions of a Machine that no policy is about: what is derived from others, and our own.
var derived = []string{
	clusterv1.MachineReadyCondition, clusterv1.MachineAvailableCondition, clusterv1.MachineHealthCheckSucceededCondition,
	clusterv1.MachineUpToDateCondition, clusterv1.MachineDeletingCondition,
}

// machineChanged lets those updates of a Machine pass by which it may be judged otherwise, and those by which others take our
// condition away.
func machineChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.Machine) bool {
		const own = clusterv1.MachineHealthCheckSucceededCondition
		return before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			before.Status.NodeRef != after.Status.NodeRef ||
			before.Spec.ProviderID != after.Spec.ProviderID ||
			!maps.Equal(before.Labels, after.Labels) ||
			!maps.Equal(before.Annotations, after.Annotations) ||
			meta.FindStatusCondition(before.Status.Conditions, own) != nil && meta.FindStatusCondition(after.Status.Conditions, own) == nil ||
			!equality.Semantic.DeepEqual(
				conditions.Foreign(before.Status.Conditions, derived...), conditions.Foreign(after.Status.Conditions, derived...))
	})
}

// checkChanged lets those updates of a MachineHealthCheck pass that change what it asks for.
func checkChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.MachineHealthCheck) bool {
		return before.Generation != after.Generation || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!maps.Equal(before.Labels, after.Labels) || !maps.Equal(before.Annotations, after.Annotations)
	})
}

// clusterChanged lets those updates of a Cluster pass that change whether, and since when, its Machines are judged.
func clusterChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.Cluster) bool {
		for _, kind := range []string{clusterv1.ClusterInfrastructureReadyCondition, clusterv1.ClusterControlPlaneInitializedCondition} {
			if !equality.Semantic.DeepEqual(
				meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)) {
				return true
			}
		}
		return predicates.Paused(before, after) || !maps.Equal(before.Annotations, after.Annotations)
	})
}

// timeoutsChanged lets those updates of a MachineDeployment pass that change the default policy of its Machines.
func timeoutsChanged() predicate.Predicate {
	return predicates.OnlyChanges(func(before, after *clusterv1.MachineDeployment) bool {
		for _, key := range []string{health.CreationTimeoutAnnotation, health.HealthTimeoutAnnotation, health.MCMCreationTimeoutAnnotation} {
			if before.Annotations[key] != after.Annotations[key] {
				return true
			}
		}
		return false
	})
}
