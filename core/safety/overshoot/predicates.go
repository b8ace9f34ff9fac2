package overshoot

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// changed passes changes of spec and metadata, and a spec that a set has read.
func changed() predicate.Predicate {
	return predicates.Changes(func(before, after client.Object) bool {
		if predicates.NotOnlyStatus(before, after) {
			return true
		}
		old, ok := before.(*clusterv1.MachineSet)
		young, okYoung := after.(*clusterv1.MachineSet)
		return ok && okYoung && old.Status.ObservedGeneration != young.Status.ObservedGeneration
	})
}
