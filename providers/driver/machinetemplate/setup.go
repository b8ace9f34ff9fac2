package machinetemplate

import (
	"github.com/pkg/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/controller/predicates"
)

// workers is the number of templates that are sized at a time: there are few, and each only once.
const workers = 1

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler[T]) SetupWithManager(mgr ctrl.Manager) error {
	err := ctrl.NewControllerManagedBy(mgr).
		For(r.New(), builder.WithPredicates(
			predicates.HasWatchLabel(r.WatchFilter), predicates.Changes[client.Object](predicates.NotOnlyStatus),
		)).
		WithOptions(manager.ControllerOptions[reconcile.Request](workers)).
		Complete(r)
	return errors.Wrapf(err, "building the controller of %s", r.Kind)
}
