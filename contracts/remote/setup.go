package remote

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/manager"

	"millwright.dev/contracts/controller/predicates"
)

// SetupWithManager adds the controller, and ends all connections with the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	adding := ctrl.NewControllerManagedBy(mgr).
		// The name is a label of controller-runtime's metrics, which keep it.
		Named("target").
		For(&clusterv1.Cluster{}, builder.WithPredicates(predicates.HasWatchLabel(r.WatchFilter), readinessChanged())).
		WithOptions(options)
	if r.WatchSecrets {
		adding = adding.WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(ofKubeconfig))
	}
	if err := adding.Complete(r); err != nil {
		return errors.Wrap(err, "adding the controller of target connections")
	}
	return mgr.Add(manager.RunnableFunc(func(ctx context.Context) error {
		defer r.Connections.Close()
		if err := r.Connections.WatchKubeconfig(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		return nil
	}))
}
