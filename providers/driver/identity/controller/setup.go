package controller

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/providers/driver/identity"
)

// workers is the number of identities that are checked at a time. One whose cloud does not answer takes one for CallTimeout, and then
// not again for ever longer waits.
const workers = 10

// SetupWithManager adds the reconciler to a manager. The reconciler of the machines, which adds their index, is set up too.
func (r *Reconciler[I]) SetupWithManager(mgr ctrl.Manager) error {
	if r.Unused {
		return nil
	}
	err := ctrl.NewControllerManagedBy(mgr).
		For(r.New(), builder.WithPredicates(
			predicates.HasWatchLabel(r.WatchFilter), predicates.Changes[client.Object](predicates.NotOnlyStatus),
		)).
		Watches(r.Machines.New(), handler.EnqueueRequestsFromMapFunc(r.awaitedBy), builder.WithPredicates(predicates.OnlyDeletions())).
		WithOptions(manager.ControllerOptions[reconcile.Request](workers)).
		Complete(r)
	return errors.Wrapf(err, "building the controller of %s", r.Kind)
}

// awaitedBy returns a request for the identity of a machine that no longer exists, if it waits for that.
func (r *Reconciler[I]) awaitedBy(ctx context.Context, machine client.Object) []reconcile.Request {
	user, ok := machine.(identity.User)
	if !ok || user.IdentityName() == "" {
		return nil
	}
	id, key := r.New(), types.NamespacedName{Name: user.IdentityName()}
	if err := r.Client.Get(ctx, key, id); err != nil || id.GetDeletionTimestamp().IsZero() {
		return nil
	}
	return []reconcile.Request{{NamespacedName: key}}
}
