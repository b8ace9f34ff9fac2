// Package filter restricts a core to the objects that carry its value of the watch label, so that several
// cores can share a management cluster (flag --watch-filter).
package filter

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Matches says whether an object is for the core with that value; the empty value takes all objects.
func Matches(value string, obj client.Object) bool {
	return value == "" || obj.GetLabels()[clusterv1.WatchLabel] == value
}

// HasLabel is Matches as a predicate.
func HasLabel(value string) predicate.Predicate {
	return predicate.NewPredicateFuncs(func(obj client.Object) bool { return Matches(value, obj) })
}
