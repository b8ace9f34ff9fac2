package machinedeployment

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
)

// SetupWithManager adds the reconciler to a manager, whose cache must have the indexes of core/index. Machines are not watched: their sets sum them up, and it
// is by the status of a set that a deployment learns of what has happened to its Machines. Where a set is ahead of the cache, see
// awaitCache.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if r.Recorder == nil {
		r.Recorder = events.Within(mgr.GetEventRecorder("machinedeployment"))
	}
	if r.Sets == nil {
		r.Sets = &persist.Versions{}
	}
	err := ctrl.NewControllerManagedBy(mgr).
		Named("machinedeployment").
		For(&clusterv1.MachineDeployment{}, builder.WithPredicates(predicates.HasWatchLabel(r.WatchFilter), predicate.Or(r.written.Awaited(), deploymentChanged()))).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.deploymentsOfSet), builder.WithPredicates(setChanged())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.deploymentsOfCluster), builder.WithPredicates(clusterChanged())).
		WithOptions(options).
		Complete(r)
	return errors.Wrap(err, "building the MachineDeployment controller")
}

// deploymentChanged lets events pass but those that only the status has changed for: that is our own write.
func deploymentChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() || metadataChanged(e.ObjectOld, e.ObjectNew)
	}}
}

// setChanged lets all changes of a set pass that are more than a new version.
func setChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*clusterv1.MachineSet)
		after, okAfter := e.ObjectNew.(*clusterv1.MachineSet)
		return okBefore && okAfter && (before.Generation != after.Generation || metadataChanged(before, after) ||
			!equality.Semantic.DeepEqual(before.Status, after.Status))
	}}
}

func metadataChanged(before, after client.Object) bool {
	return before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
		!equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
		!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
		!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) ||
		!slices.Equal(before.GetFinalizers(), after.GetFinalizers())
}

// clusterChanged lets events pass that matter to deployments: a Cluster that appears, is paused or unpaused.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*clusterv1.Cluster)
		after, okAfter := e.ObjectNew.(*clusterv1.Cluster)
		return okBefore && okAfter && ptr.Deref(before.Spec.Paused, false) != ptr.Deref(after.Spec.Paused, false)
	}}
}

// deploymentsOfSet returns the deployment that controls a set; for one that nobody controls, those that select it.
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

func (r *Reconciler) deploymentsWhere(ctx context.Context, namespace string, matches func(*clusterv1.MachineDeployment) bool) []ctrl.Request {
	list := &clusterv1.MachineDeploymentList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		// The cache can only refuse while the manager stops.
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
