package controller

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/contracts/controller/bulkhead"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/wake"
)

const name = "cloudconfig"

// Connectivity notifies of connections to target clusters that are established or lost; remote.Connections do.
type Connectivity interface {
	OnConnectivity(func(cluster types.NamespacedName))
}

// SetupWithManager starts the controller with the manager. A quarter of the workers is the share of one Cluster.
func (r *Reconciler) SetupWithManager(ctx context.Context, mgr ctrl.Manager, connections Connectivity, options controller.Options) error {
	waker := wake.New()
	connections.OnConnectivity(func(cluster types.NamespacedName) {
		for _, request := range r.configsAwaitingCluster(ctx, cluster) {
			waker.Enqueue(request.NamespacedName)
		}
	})
	r.turns = bulkhead.ForWorkers[client.ObjectKey](options.MaxConcurrentReconciles).Waking(waker.Enqueue)
	if r.Outcomes == nil {
		r.Outcomes = &approval.Outcomes{}
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named(name).
		For(&bootstrapv1.CloudConfig{}, builder.WithPredicates(predicates.HasWatchLabel(r.WatchFilter), configChanges())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(configOfMachine), builder.WithPredicates(machineChanges())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.configsOfCluster), builder.WithPredicates(clusterChanges())).
		WatchesRawSource(waker.Source()).
		WatchesRawSource(r.Outcomes.Source()).
		WithOptions(options).
		Complete(r)
	return errors.Wrap(err, "setting up the controller of CloudConfigs")
}

// configOfMachine maps a Machine to the CloudConfig that its spec names.
func configOfMachine(_ context.Context, object client.Object) []ctrl.Request {
	machine, ok := object.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	ref := machine.Spec.Bootstrap.ConfigRef
	if ref.Kind != "CloudConfig" || ref.APIGroup != bootstrapv1.GroupVersion.Group || ref.Name == "" {
		return nil
	}
	return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: machine.Namespace, Name: ref.Name}}}
}

// configsAwaitingCluster maps a Cluster, whose connection was established or lost, to the CloudConfigs that
// may wait for that. One that is ready is left alone: there may be thousands of them. Its status may not say yet that it waits.
func (r *Reconciler) configsAwaitingCluster(ctx context.Context, cluster types.NamespacedName) []ctrl.Request {
	return r.configsWhere(ctx, cluster, func(config *bootstrapv1.CloudConfig) bool {
		return !config.DeletionTimestamp.IsZero() || !meta.IsStatusConditionTrue(config.Status.Conditions, bootstrapv1.ReadyCondition) ||
			r.unconnected.has(client.ObjectKeyFromObject(config))
	})
}

// configsOfCluster maps a Cluster to its CloudConfigs.
func (r *Reconciler) configsOfCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	return r.configsWhere(ctx, client.ObjectKeyFromObject(cluster), func(*bootstrapv1.CloudConfig) bool { return true })
}

// configsWhere are those of the CloudConfigs of a Cluster that matter.
func (r *Reconciler) configsWhere(
	ctx context.Context,
	cluster types.NamespacedName,
	matters func(*bootstrapv1.CloudConfig) bool,
) []ctrl.Request {
	configs := &bootstrapv1.CloudConfigList{}
	if err := r.Client.List(ctx, configs, client.InNamespace(cluster.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the CloudConfigs of a Cluster failed", "cluster", cluster)
		return nil
	}
	var requests []ctrl.Request
	for i := range configs.Items {
		if config := &configs.Items[i]; matters(config) && r.clusterOf(ctx, config) == cluster.Name {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(config)})
		}
	}
	return requests
}

// clusterOf is the name of the Cluster of a CloudConfig, by the label that it gets with its owner, or by its Machine; "" while it has
// neither.
func (r *Reconciler) clusterOf(ctx context.Context, config *bootstrapv1.CloudConfig) string {
	if name := config.Labels[clusterv1.ClusterNameLabel]; name != "" {
		return name
	}
	machine, err := readOwner(ctx, r.Client, config)
	if err != nil || machine == nil {
		return ""
	}
	return machine.Spec.ClusterName
}
