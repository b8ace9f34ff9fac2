package predicates

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// Changes lets updates pass whose two versions relevant accepts, and all creations and deletions. A cache that has missed the end of an
// object shows its successor of the same name as an update, which passes as well.
func Changes[O client.Object](relevant func(before, after O) bool) predicate.Funcs {
	return updates(func(before, after O) bool { return before.GetUID() != after.GetUID() || relevant(before, after) })
}

func updates[O client.Object](relevant func(before, after O) bool) predicate.Funcs {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(O)
		after, ok2 := e.ObjectNew.(O)
		return ok && ok2 && relevant(before, after)
	}}
}

// ChangesWhileThere is Changes without deletions: for controllers that are done with an object before it is deleted.
func ChangesWhileThere[O client.Object](relevant func(before, after O) bool) predicate.Funcs {
	funcs := Changes(relevant)
	funcs.DeleteFunc = func(event.DeleteEvent) bool { return false }
	funcs.GenericFunc = func(event.GenericEvent) bool { return false }
	return funcs
}

// OnlyChanges is Changes without creations and deletions.
func OnlyChanges[O client.Object](relevant func(before, after O) bool) predicate.Funcs {
	funcs := updates(relevant)
	funcs.CreateFunc = func(event.CreateEvent) bool { return false }
	funcs.DeleteFunc = func(event.DeleteEvent) bool { return false }
	funcs.GenericFunc = func(event.GenericEvent) bool { return false }
	return funcs
}

// OnlyDeletions lets nothing pass but the end of an object.
func OnlyDeletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// Resync is true for the updates in which nothing has changed: those of --sync-period, by which a controller finds what it
// has missed the events of.
func Resync(before, after client.Object) bool {
	return before.GetResourceVersion() == after.GetResourceVersion()
}

// Resyncs lets nothing pass but updates in which nothing has changed. A controller joins it, by predicate.Or, with what it lets pass of
// its own objects, as the flag --sync-period promises: an event that was lost costs one period at most.
func Resyncs() predicate.Predicate { return OnlyChanges[client.Object](Resync) }

// NotOnlyStatus is true when something else than the status has changed. It keeps a controller's own writes of the status from
// waking it.
func NotOnlyStatus(before, after client.Object) bool {
	return before.GetGeneration() != after.GetGeneration() ||
		before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
		!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// Paused is true when a Cluster was paused or unpaused.
func Paused(before, after *clusterv1.Cluster) bool {
	return ptr.Deref(before.Spec.Paused, false) != ptr.Deref(after.Spec.Paused, false)
}
