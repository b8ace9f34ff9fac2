package machinetemplate

import (
	"github.com/pkg/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/providers/driver/identity"
)

// workers is the number of templates that are sized at a time: there are few, and each only once.
const workers = 1

// SetupWithManager adds the reconciler to a manager.
func (r *Reconciler[T]) SetupWithManager(mgr ctrl.Manager) error {
	if r.Recorder == nil {
		r.Recorder = events.For(mgr, "machinetemplate")
	}
	users := identity.Users{Reader: r.Client, New: func() client.Object { return r.New() }, NewList: r.NewList}
	if r.Identities != nil {
		if err := users.Index(mgr.GetFieldIndexer()); err != nil {
			return err
		}
	}
	b := ctrl.NewControllerManagedBy(mgr).
		For(r.New(), builder.WithPredicates(predicates.HasWatchLabel(r.WatchFilter), changes())).
		WithOptions(manager.ControllerOptions[reconcile.Request](workers))
	err := r.Identities.Watch(b, users).Complete(r)
	return errors.Wrapf(err, "building the controller of %s", r.Kind)
}
