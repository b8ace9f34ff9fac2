package machinehealthcheck

import (
	"context"

	"github.com/pkg/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/wake"
)

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	if r.Written == nil {
		r.Written = &persist.Versions{}
	}
	results := wake.New()
	r.Results.OnChange(results.Enqueue)
	err := ctrl.NewControllerManagedBy(mgr).Named("machinehealthcheck").
		For(&clusterv1.MachineHealthCheck{}, builder.WithPredicates(
			predicates.HasWatchLabel(r.WatchFilter), predicate.Or(r.Written.Awaited(), predicates.Resyncs(), checkChanged()))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(clusterChanged())).
		WatchesRawSource(results.Source()).
		WithOptions(options).Complete(r)
	return errors.Wrap(err, "adding the MachineHealthCheck controller")
}

// ofCluster finds the MachineHealthChecks of a Cluster.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	list := &clusterv1.MachineHealthCheckList{}
	if err := r.Client.List(ctx, list, client.InNamespace(cluster.GetNamespace()), client.UnsafeDisableDeepCopy); err != nil {
		// The cache fails only while the manager stops.
		ctrl.LoggerFrom(ctx).Error(err, "Finding the MachineHealthChecks of a Cluster")
		return nil
	}
	var found []ctrl.Request
	for i := range list.Items {
		if list.Items[i].Spec.ClusterName == cluster.GetName() {
			found = append(found, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return found
}
