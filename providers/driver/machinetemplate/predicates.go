package machinetemplate

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
)

// changes are the events of templates that matter: changes by others, and those of --sync-period, which call nothing once a size is known.
func changes() predicate.Predicate {
	return predicate.Or(predicates.Resyncs(), predicates.Changes[client.Object](predicates.NotOnlyStatus))
}
