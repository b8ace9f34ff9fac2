package inframachine

import (
	"context"
	"maps"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/spread"
)

// SetupWithManager adds the reconciler and its inventory to a manager.
func (r *Reconciler[M]) SetupWithManager(mgr ctrl.Manager) error {
	r.Options = r.Options.withDefaults()
	r.backoff, r.places = newBackoff(r.Clock, r.Options.Backoff), spread.NewDecisions()
	r.turns = newTurns(r.Options.Concurrency, r.Inventory.Wake)
	gvk, err := apiutil.GVKForObject(r.New(), mgr.GetScheme())
	if err != nil {
		return errors.Wrapf(err, "finding the kind %s in the scheme", r.Kind)
	}
	r.group = gvk.Group
	if err := r.indexByController(mgr.GetFieldIndexer()); err != nil {
		return err
	}
	if err := mgr.Add(r.Inventory); err != nil {
		return errors.Wrap(err, "adding the inventory")
	}
	answers, err := r.setUpBatches(mgr)
	if err != nil {
		return err
	}
	err = ctrl.NewControllerManagedBy(mgr).
		For(r.New(), builder.WithPredicates(r.watched(), changedByOthers())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.ofMachine),
			builder.WithPredicates(machineConcerns())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster),
			builder.WithPredicates(clusterConcerns())).
		WatchesRawSource(r.Inventory.Source()).
		WatchesRawSource(answers).
		WithOptions(controller.Options{MaxConcurrentReconciles: r.Options.Concurrency}).
		Complete(r)
	return errors.Wrapf(err, "building the controller of %s", r.Kind)
}

// watched leaves the objects that --watch-filter selects.
func (r *Reconciler[M]) watched() predicate.Predicate {
	return predicate.NewPredicateFuncs(r.selected)
}

func (r *Reconciler[M]) selected(obj client.Object) bool {
	return r.Options.WatchFilter == "" || obj.GetLabels()[clusterv1.WatchLabel] == r.Options.WatchFilter
}

// changedByOthers leaves out what this reconciler writes itself: status, launch record with provider ID, finalizer.
func changedByOthers() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion() || // resync
			e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() ||
			!maps.Equal(e.ObjectOld.GetLabels(), e.ObjectNew.GetLabels()) ||
			!maps.Equal(foreignAnnotations(e.ObjectOld), foreignAnnotations(e.ObjectNew)) ||
			controllerUID(e.ObjectOld) != controllerUID(e.ObjectNew) ||
			controllerutil.ContainsFinalizer(e.ObjectOld, Finalizer) && !controllerutil.ContainsFinalizer(e.ObjectNew, Finalizer) ||
			isReadable(e.ObjectOld) != isReadable(e.ObjectNew) ||
			// The reconciler changes both at once.
			providerIDOf(e.ObjectOld) != providerIDOf(e.ObjectNew) &&
				e.ObjectOld.GetAnnotations()[LaunchAnnotation] == e.ObjectNew.GetAnnotations()[LaunchAnnotation]
	}}
}

// isReadable says whether the launch record can be read; a person repairs one that cannot.
func isReadable(obj client.Object) bool {
	_, err := readRecord(obj)
	return err == nil
}

func providerIDOf(obj client.Object) string {
	if machine, ok := obj.(driver.Object); ok {
		return machine.CommonSpec().ProviderID
	}
	return ""
}

func foreignAnnotations(obj client.Object) map[string]string {
	annotations := maps.Clone(obj.GetAnnotations())
	delete(annotations, LaunchAnnotation)
	return annotations
}

func controllerUID(obj client.Object) types.UID {
	if ref := metav1.GetControllerOf(obj); ref != nil {
		return ref.UID
	}
	return ""
}

// machineConcerns leaves the changes of a Machine that a launch may wait for, or the end of a deletion.
func machineConcerns() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1.Machine)
			after, ok2 := e.ObjectNew.(*clusterv1.Machine)
			if !ok || !ok2 {
				return false
			}
			return dataSecretName(before) != dataSecretName(after) ||
				before.Spec.InfrastructureRef != after.Spec.InfrastructureRef ||
				before.Spec.FailureDomain != after.Spec.FailureDomain ||
				!after.DeletionTimestamp.IsZero() && before.Spec.ProviderID != after.Spec.ProviderID
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func dataSecretName(m *clusterv1.Machine) string {
	if m.Spec.Bootstrap.DataSecretName == nil {
		return ""
	}
	return *m.Spec.Bootstrap.DataSecretName
}

// clusterConcerns leaves the changes of a Cluster that all its machines must know.
func clusterConcerns() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return true },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1.Cluster)
			after, ok2 := e.ObjectNew.(*clusterv1.Cluster)
			if !ok || !ok2 {
				return false
			}
			return isTrue(before.Spec.Paused) != isTrue(after.Spec.Paused) ||
				isTrue(before.Status.Initialization.InfrastructureProvisioned) != isTrue(after.Status.Initialization.InfrastructureProvisioned)
		},
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

func isTrue(b *bool) bool { return b != nil && *b }

// ofMachine returns the object that a Machine refers to.
func (r *Reconciler[M]) ofMachine(_ context.Context, obj client.Object) []reconcile.Request {
	machine, ok := obj.(*clusterv1.Machine)
	if !ok {
		return nil
	}
	ref := machine.Spec.InfrastructureRef
	if ref.Kind != r.Kind || ref.APIGroup != r.group {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: machine.Namespace, Name: ref.Name}}}
}

// ofCluster returns the objects of a Cluster.
func (r *Reconciler[M]) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	list := r.NewList()
	err := r.Client.List(ctx, list, client.InNamespace(cluster.GetNamespace()),
		client.MatchingLabels{clusterv1.ClusterNameLabel: cluster.GetName()})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Listing the machines of a Cluster failed", "cluster", client.ObjectKeyFromObject(cluster))
		return nil
	}
	var requests []reconcile.Request
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if obj, ok := item.(client.Object); ok {
			requests = append(requests, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(obj)})
		}
		return nil
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Reading the machines of a Cluster failed", "cluster", client.ObjectKeyFromObject(cluster))
	}
	return requests
}
