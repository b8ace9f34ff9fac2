package cluster

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// Options are what flags set.
type Options struct {
	// RemoteConnectionGracePeriod is how long RemoteConnectionProbe stays True after the last answer of the API server.
	RemoteConnectionGracePeriod time.Duration
	// WatchFilter restricts to Clusters with that value of the watch label; "" is all.
	WatchFilter string
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	clusters := func() client.ObjectList { return &clusterv1.ClusterList{} }
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		For(&clusterv1.Cluster{}, builder.WithPredicates(predicates.HasWatchLabel(r.Options.WatchFilter), predicate.Or(r.versions.Awaited(), changed()))).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(ofWorker), builder.WithPredicates(deletions())).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.ofLooseWorker), builder.WithPredicates(deletions())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.ofLooseWorker), builder.WithPredicates(deletions())).
		Watches(&clusterv1.MachineDeployment{}, reporting(clusterOf), builder.WithPredicates(reportChanged())).
		Watches(&clusterv1.MachineSet{}, reporting(clusterOf), builder.WithPredicates(reportChanged())).
		Watches(&clusterv1.Machine{}, reporting(clusterOf), builder.WithPredicates(reportChanged())).
		WatchesMetadata(crd, external.ToReferrersOfCRD(r.Client, clusters), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(source.Func(r.onConnectivity)).
		WithOptions(options).
		Build(r)
	if err != nil {
		return errors.Wrap(err, "adding the Cluster controller")
	}
	return r.Kinds.Bind(built, external.ToReferrers(r.Client, clusters))
}

// onConnectivity enqueues a Cluster when its connection is made or lost.
func (r *Reconciler) onConnectivity(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.Connections.OnConnectivity(func(cluster types.NamespacedName) {
		queue.Add(reconcile.Request{NamespacedName: cluster})
	})
	return nil
}

// changed lets those updates of a Cluster pass that say something new to its controller; its own writes to the
// status do not.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			before.GetLabels()[clusterv1.WatchLabel] != after.GetLabels()[clusterv1.WatchLabel] ||
			!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(before.GetFinalizers(), after.GetFinalizers())
	}}
}

// deletions lets nothing pass but the end of an object: that is all that a Cluster waits for.
func deletions() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		UpdateFunc:  func(event.UpdateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
	}
}

// ofWorker maps a MachineDeployment to its Cluster.
func ofWorker(_ context.Context, obj client.Object) []reconcile.Request {
	deployment, ok := obj.(*clusterv1.MachineDeployment)
	if !ok {
		return nil
	}
	return request(deployment.Namespace, deployment.Spec.ClusterName)
}

// ofLooseWorker maps a MachineSet or Machine to its Cluster, unless it has a controller: then the end of that
// controller is what the Cluster waits for, and the end of each of a thousand Machines would wake it for nothing.
func (r *Reconciler) ofLooseWorker(ctx context.Context, obj client.Object) []reconcile.Request {
	var cluster string
	switch typed := obj.(type) {
	case *clusterv1.MachineSet:
		cluster = typed.Spec.ClusterName
	case *clusterv1.Machine:
		cluster = typed.Spec.ClusterName
	}
	if owner := metav1.GetControllerOf(obj); owner != nil && r.exists(ctx, obj.GetNamespace(), owner) {
		return nil
	}
	return request(obj.GetNamespace(), cluster)
}

// exists says whether the controlling MachineSet or MachineDeployment is still there.
func (r *Reconciler) exists(ctx context.Context, namespace string, owner *metav1.OwnerReference) bool {
	key := client.ObjectKey{Namespace: namespace, Name: owner.Name}
	switch owner.Kind {
	case "MachineSet":
		return r.Client.Get(ctx, key, &clusterv1.MachineSet{}) == nil
	case "MachineDeployment":
		return r.Client.Get(ctx, key, &clusterv1.MachineDeployment{}) == nil
	}
	return false
}

func request(namespace, cluster string) []reconcile.Request {
	if cluster == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: cluster}}}
}
