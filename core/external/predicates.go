package external

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

// DefinitionChanged lets those updates of a CRD pass that may change how objects of its kind are read: of its labels, which name the
// version, and of its spec, which serves it. A CRD that was deleted and created again while it was not watched is an update to a watch: of
// the UID.
func DefinitionChanged() predicate.Predicate {
	return predicate.Or[client.Object](predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{}, predicate.Funcs{
		UpdateFunc: func(e event.UpdateEvent) bool { return e.ObjectOld.GetUID() != e.ObjectNew.GetUID() },
	})
}
