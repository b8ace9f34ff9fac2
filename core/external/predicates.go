package external

import "sigs.k8s.io/controller-runtime/pkg/predicate"

// DefinitionChanged lets those updates of a CRD pass that may change how objects of its kind are read: of its labels, which name the
// version, and of its spec, which serves it.
func DefinitionChanged() predicate.Predicate {
	return predicate.Or(predicate.LabelChangedPredicate{}, predicate.GenerationChangedPredicate{})
}
