package remote

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// readinessChanged lets only those updates of Clusters pass that make a difference to Reconcile.
func readinessChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.Cluster) bool {
		return ready(before) != ready(after) || before.Labels[clusterv1.WatchLabel] != after.Labels[clusterv1.WatchLabel]
	})
}
