package freeze

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// instanceVanished lets those updates of a Machine pass by which its instance turns out to be gone.
func instanceVanished() predicate.Predicate {
	return predicates.OnlyChanges(func(before, after *clusterv1.Machine) bool { return !instanceGone(before) && instanceGone(after) })
}
