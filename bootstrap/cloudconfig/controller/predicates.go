package controller

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// changed lets updates pass that are relevant, and resyncs, by which drift is found. Creations pass, deletions do not: what has
// to be done is done while there is a finalizer.
func changed[O client.Object](relevant func(before, after O) bool) predicate.Predicate {
	return predicates.ChangesWhileThere(func(before, after O) bool { return predicates.Resync(before, after) || relevant(before, after) })
}

// configChanges ignores the controller's own writes of status and finalizer.
func configChanges() predicate.Predicate {
	return changed(func(before, after client.Object) bool {
		return before.GetGeneration() != after.GetGeneration() ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) ||
			!maps.Equal(before.GetAnnotations(), after.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences())
	})
}

// machineChanges lets pass what a CloudConfig depends on.
func machineChanges() predicate.Predicate {
	return changed(func(before, after *clusterv1.Machine) bool {
		return before.Spec.ProviderID != after.Spec.ProviderID ||
			before.Spec.Bootstrap.ConfigRef != after.Spec.Bootstrap.ConfigRef ||
			before.Status.NodeRef.Name != after.Status.NodeRef.Name
	})
}

// clusterChanges lets pass what every CloudConfig of the Cluster depends on.
func clusterChanges() predicate.Predicate {
	relevant := func(c *clusterv1.Cluster) []bool {
		return []bool{
			ptr.Deref(c.Status.Initialization.InfrastructureProvisioned, false),
			ptr.Deref(c.Status.Initialization.ControlPlaneInitialized, false),
		}
	}
	return changed(func(before, after *clusterv1.Cluster) bool {
		return predicates.Paused(before, after) || !slices.Equal(relevant(before), relevant(after)) ||
			before.Spec.ControlPlaneEndpoint != after.Spec.ControlPlaneEndpoint
	})
}
