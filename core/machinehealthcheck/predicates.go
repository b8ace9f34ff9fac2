package machinehealthcheck

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// checkChanged lets all events of a MachineHealthCheck pass but updates of its status alone.
func checkChanged() predicate.Predicate {
	return predicates.Changes(func(before, after client.Object) bool { return predicates.NotOnlyStatus(before, after) })
}

// clusterChanged lets the creation of a Cluster pass, its end, and that it is paused or no longer.
func clusterChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.Cluster) bool { return predicates.Paused(before, after) })
}
