// Package predicates has the predicates that the controllers of core and providers share.
package predicates

import (
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// MatchesWatchLabel is true when an object is for the manager with that value of --watch-filter; the empty value takes all
// objects. So several managers can share a management cluster.
func MatchesWatchLabel(value string, obj client.Object) bool {
	return value == "" || obj.GetLabels()[clusterv1.WatchLabel] == value
}

// HasWatchLabel is MatchesWatchLabel as a predicate. The update that takes an object from this manager passes: what the manager
// has under way for it must end. Reconcilers therefore ask MatchesWatchLabel again.
func HasWatchLabel(value string) predicate.Predicate {
	matches := predicate.NewPredicateFuncs(func(obj client.Object) bool { return MatchesWatchLabel(value, obj) })
	matches.UpdateFunc = func(e event.UpdateEvent) bool {
		return MatchesWatchLabel(value, e.ObjectNew) || MatchesWatchLabel(value, e.ObjectOld)
	}
	return matches
}
