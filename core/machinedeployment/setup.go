package machinedeployment

import (
	"context"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/external"
)

// SetupWithManager adds the reconciler to a manager, whose cache must have the indexes of core/index. Machines are not watched:
// their sets count them, and changes of a set's status bring its deployment back. Where a set is ahead of the cache, see
// awaitCache.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if r.Recorder == nil {
		r.Recorder = events.For(mgr, "machinedeployment")
	}
	if r.Written == nil {
		r.Written = &persist.Versions{}
	}
	if r.Sets == nil {
		r.Sets = &persist.Versions{}
	}
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("machinedeployment").
		For(&clusterv1.MachineDeployment{}, builder.WithPredicates(
			predicates.HasWatchLabel(r.WatchFilter), predicate.Or(r.Written.Awaited(), predicates.Resyncs(), deploymentChanged()))).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.deploymentsOfSet), builder.WithPredicates(setChanged())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.deploymentsOfCluster), builder.WithPredicates(clusterChanged())).
		WatchesRawSource(source.Func(r.wakeWhenFrozen)).
		WithOptions(options).
		Build(r)
	if err != nil || r.Informers == nil {
		return errors.Wrap(err, "building the MachineDeployment controller")
	}
	r.kinds = &external.Kinds{Informers: r.Informers, Clock: clock.RealClock{}}
	return errors.Wrap(r.kinds.Bind(built, handler.EnqueueRequestsFromMapFunc(r.deploymentsOfTemplate)), "watching templates")
}

// deploymentsOfSet returns the deployment that controls a set; for one without a controller, those that select it.
func (r *Reconciler) deploymentsOfSet(ctx context.Context, set client.Object) []ctrl.Request {
	if owner := metav1.GetControllerOf(set); owner != nil {
		if owner.Kind != deploymentKind.Kind {
			return nil
		}
		return []ctrl.Request{{NamespacedName: client.ObjectKey{Namespace: set.GetNamespace(), Name: owner.Name}}}
	}
	return r.deploymentsWhere(ctx, set.GetNamespace(), func(deployment *clusterv1.MachineDeployment) bool {
		selector := effectiveSelector(deployment)
		matcher, err := metav1.LabelSelectorAsSelector(&selector)
		return err == nil && matcher.Matches(labels.Set(set.GetLabels()))
	})
}

func (r *Reconciler) deploymentsOfCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	return r.deploymentsWhere(ctx, cluster.GetNamespace(), func(deployment *clusterv1.MachineDeployment) bool {
		return deployment.Spec.ClusterName == cluster.GetName()
	})
}

func (r *Reconciler) deploymentsWhere(
	ctx context.Context,
	namespace string,
	matches func(*clusterv1.MachineDeployment) bool,
) []ctrl.Request {
	list := &clusterv1.MachineDeploymentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		// The cache fails only while the manager stops.
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list MachineDeployments")
		return nil
	}
	var requests []ctrl.Request
	for i := range list.Items {
		if matches(&list.Items[i]) {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
		}
	}
	return requests
}
