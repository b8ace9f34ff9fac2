package cluster

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
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

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/wake"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// Options are what flags set.
type Options struct {
	// RemoteConnectionGracePeriod is how long RemoteConnectionProbe stays True after the last answer of the API server.
	RemoteConnectionGracePeriod time.Duration
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	clusters := func() client.ObjectList { return &clusterv1.ClusterList{} }
	connectivity := wake.New()
	r.Connections.OnConnectivity(connectivity.Enqueue)
	if r.Freezer != nil {
		r.Freezer.OnChange(connectivity.Enqueue)
	}
	if r.Written == nil {
		r.Written = &persist.Versions{}
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("cluster").
		For(&clusterv1.Cluster{}, builder.WithPredicates(
			predicates.HasWatchLabel(r.WatchFilter), predicate.Or(r.Written.Awaited(), predicates.Resyncs(), clusterChanged()))).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(clusterOfDeployment),
			builder.WithPredicates(predicates.OnlyDeletions())).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.clusterOfStandalone),
			builder.WithPredicates(predicates.OnlyDeletions())).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(r.clusterOfStandalone),
			builder.WithPredicates(predicates.OnlyDeletions())).
		Watches(&clusterv1.MachineDeployment{}, enqueueReportsTo(), builder.WithPredicates(reportChanged())).
		Watches(&clusterv1.MachineSet{}, enqueueReportsTo(), builder.WithPredicates(reportChanged())).
		Watches(&clusterv1.Machine{}, enqueueReportsTo(), builder.WithPredicates(reportChanged())).
		WatchesMetadata(&corev1.Secret{}, handler.EnqueueRequestsFromMapFunc(r.ofSecret)).
		WatchesMetadata(crd, external.ToReferrersOfCRD(r.Client, clusters), builder.WithPredicates(external.DefinitionChanged())).
		WatchesRawSource(connectivity.Source()).
		WithOptions(options).
		Build(r)
	if err != nil {
		return errors.Wrap(err, "adding the Cluster controller")
	}
	return r.Kinds.Bind(built, external.ToReferrers(r.Client, clusters))
}

// clusterOfDeployment maps a MachineDeployment to its Cluster.
func clusterOfDeployment(_ context.Context, obj client.Object) []reconcile.Request {
	deployment, ok := obj.(*clusterv1.MachineDeployment)
	if !ok {
		return nil
	}
	return request(deployment.Namespace, deployment.Spec.ClusterName)
}

// clusterOfStandalone maps a MachineSet or Machine to its Cluster, unless its controlling owner exists: then the Cluster waits for
// the deletion of that, and the deletion of each of a thousand Machines would enqueue it for nothing.
func (r *Reconciler) clusterOfStandalone(ctx context.Context, obj client.Object) []reconcile.Request {
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

// exists is true while the controlling MachineSet or MachineDeployment is there, and not another one of its name.
func (r *Reconciler) exists(ctx context.Context, namespace string, owner *metav1.OwnerReference) bool {
	var object client.Object
	switch owner.Kind {
	case "MachineSet":
		object = &clusterv1.MachineSet{}
	case "MachineDeployment":
		object = &clusterv1.MachineDeployment{}
	default:
		return false
	}
	err := r.Client.Get(ctx, client.ObjectKey{Namespace: namespace, Name: owner.Name}, object)
	return err == nil && object.GetUID() == owner.UID
}

func request(namespace, cluster string) []reconcile.Request {
	if cluster == "" {
		return nil
	}
	return []reconcile.Request{{NamespacedName: types.NamespacedName{Namespace: namespace, Name: cluster}}}
}

// reportDelay is how old the sums in the status of a Cluster may be. All that changes in that time is one reconcile and
// at most one write, so that a rollout of a thousand Machines is not a thousand writes of the Cluster.
const reportDelay = 5 * time.Second

// enqueueReportsTo enqueues the Cluster that an object reports to after reportDelay. What comes meanwhile is the same entry of
// the queue.
func enqueueReportsTo() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	enqueue := func(obj client.Object, q queue) {
		if key := reportsTo(obj); key.Name != "" {
			q.AddAfter(reconcile.Request{NamespacedName: key}, reportDelay)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q queue) { enqueue(e.Object, q) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q queue) { enqueue(e.ObjectNew, q) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q queue) { enqueue(e.Object, q) },
	}
}

// reportsTo is the Cluster that an object reports to; none for what another object reports on, as a MachineSet of a
// MachineDeployment and the Machines of a MachineSet.
func reportsTo(obj client.Object) types.NamespacedName {
	owner := metav1.GetControllerOf(obj)
	var name string
	switch typed := obj.(type) {
	case *clusterv1.MachineDeployment:
		name = typed.Spec.ClusterName
	case *clusterv1.MachineSet:
		if owner == nil {
			name = typed.Spec.ClusterName
		}
	case *clusterv1.Machine:
		if owner == nil || owner.Kind != "MachineSet" {
			name = typed.Spec.ClusterName
		}
	}
	return types.NamespacedName{Namespace: obj.GetNamespace(), Name: name}
}
