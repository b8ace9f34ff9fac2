// Package filter restricts a core to the objects that carry its value of the watch label, so that several
// cores can share a management cluster (flag --watch-filter).
package filter

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Matches says whether an object is for the core with that value; the empty value takes all objects.
func Matches(value string, obj client.Object) bool {
	return value == "" || obj.GetLabels()[clusterv1.WatchLabel] == value
}

// HasLabel is Matches as a predicate. The update that takes an object from this core passes: what the core has under way for it
// must end. Reconcilers therefore ask Matches again.
func HasLabel(value string) predicate.Predicate {
	matches := predicate.NewPredicateFuncs(func(obj client.Object) bool { return Matches(value, obj) })
	matches.UpdateFunc = func(e event.UpdateEvent) bool { return Matches(value, e.ObjectNew) || Matches(value, e.ObjectOld) }
	return matches
}
