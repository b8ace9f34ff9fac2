package machine

import (
	"context"
	"regexp"
	"sync"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
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

	"millwright.dev/contracts/version"
	"millwright.dev/core/conditions"
	"millwright.dev/core/drain"
	"millwright.dev/core/external"
	"millwright.dev/core/filter"
	"millwright.dev/core/index"
)

// Options are what flags set.
type Options struct {
	// WatchFilter restricts to Machines with that value of the watch label; "" is all.
	WatchFilter string
	// RemoteConditionsGracePeriod is how long the conditions about the Node stay after the API server of the target
	// cluster has answered last.
	RemoteConditionsGracePeriod time.Duration
	// SyncLabels and SyncAnnotations choose further labels and annotations that go to the Node, by their keys.
	SyncLabels, SyncAnnotations []*regexp.Regexp
	// UpToDate says whether the template of a MachineSet is that of its MachineDeployment, and if not, in what it
	// differs. Nil leaves the condition UpToDate out.
	UpToDate func(*clusterv1.MachineSet, *clusterv1.MachineDeployment) (bool, string)
	// Drain configures the drains; Notify and Clock are set by the controller.
	Drain drain.Options
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	r.Options.Drain.Notify = func(key types.NamespacedName) { r.wake.add(key) }
	r.Options.Drain.Clock = r.Clock
	r.drainer = drain.New(r.Options.Drain)
	if err := mgr.Add(r.drainer); err != nil {
		return errors.Wrap(err, "adding the drainer")
	}
	machines := func() client.ObjectList { return &clusterv1.MachineList{} }
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("machine").
		For(&clusterv1.Machine{}, builder.WithPredicates(filter.HasLabel(r.Options.WatchFilter), predicate.Or(r.versions.Awaited(), changed()))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(clusterChanged())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(r.ofDeployment), builder.WithPredicates(templateChanged())).
		WatchesMetadata(crd, external.ToReferrersOfCRD(r.Client, machines), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(source.Func(r.onTarget)).
		WithOptions(options).
		Build(r)
	if err != nil {
		return errors.Wrap(err, "adding the Machine controller")
	}
	return r.Kinds.Bind(built, external.ToReferrers(r.Client, machines))
}

// onTarget enqueues Machines for what happens in target clusters and in drains.
func (r *Reconciler) onTarget(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.wake.bind(queue)
	r.Connections.OnNode(func(cluster types.NamespacedName, node *corev1.Node) {
		for _, machine := range r.ofNode(ctx, cluster, node) {
			queue.Add(machine)
		}
	})
	r.Connections.OnConnectivity(func(cluster types.NamespacedName) {
		for _, machine := range r.list(ctx, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name}) {
			queue.Add(machine)
		}
	})
	return nil
}

// ofNode finds the Machines that a Node concerns: that which is linked with it, and that which has its provider ID.
func (r *Reconciler) ofNode(ctx context.Context, cluster types.NamespacedName, node *corev1.Node) []reconcile.Request {
	lookups := []client.MatchingFields{{index.NodeName: node.Name}}
	if node.Spec.ProviderID != "" {
		lookups = append(lookups, client.MatchingFields{index.ProviderID: node.Spec.ProviderID})
	}
	var found []reconcile.Request
	for _, lookup := range lookups {
		list := &clusterv1.MachineList{}
		if err := r.Client.List(ctx, list, client.InNamespace(cluster.Namespace), lookup, client.UnsafeDisableDeepCopy); err != nil {
			ctrl.LoggerFrom(ctx).Error(err, "Finding the Machine of a Node", "Node", node.Name)
			continue
		}
		for i := range list.Items {
			if list.Items[i].Spec.ClusterName == cluster.Name {
				found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
	}
	return found
}

// ofCluster finds the Machines of a Cluster.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.list(ctx, client.InNamespace(cluster.GetNamespace()), client.MatchingFields{index.Cluster: cluster.GetName()})
}

// ofDeployment finds the Machines of a MachineDeployment.
func (r *Reconciler) ofDeployment(ctx context.Context, deployment client.Object) []reconcile.Request {
	return r.list(ctx, client.InNamespace(deployment.GetNamespace()), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: deployment.GetName()})
}

func (r *Reconciler) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding the Machines that an event concerns")
		return nil
	}
	return external.Requests(list)
}

// changed lets those updates of a Machine pass that say something new to its controller: what users and other
// controllers write, and not its own writes to the status.
func changed() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.Machine)
		after, ok2 := e.ObjectNew.(*clusterv1.Machine)
		if !ok || !ok2 {
			return true
		}
		return before.Generation != after.Generation ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
			!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
			!equality.Semantic.DeepEqual(before.Finalizers, after.Finalizers) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
			!equality.Semantic.DeepEqual(conditions.Foreign(before.Status.Conditions, ownConditions...), conditions.Foreign(after.Status.Conditions, ownConditions...))
	}}
}

// clusterChanged lets those updates of a Cluster pass that change what its Machines may do.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, ok := e.ObjectOld.(*clusterv1.Cluster)
		after, ok2 := e.ObjectNew.(*clusterv1.Cluster)
		return ok && ok2 && (ptr.Deref(before.Spec.Paused, false) != ptr.Deref(after.Spec.Paused, false) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero())
	}}
}

// templateChanged lets those updates of a MachineDeployment pass that may outdate its Machines.
func templateChanged() predicate.Predicate {
	never := func(event.GenericEvent) bool { return false }
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: never,
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(*clusterv1.MachineDeployment)
			after, ok2 := e.ObjectNew.(*clusterv1.MachineDeployment)
			return ok && ok2 && !equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template)
		},
	}
}

// waker adds Machines to the work queue once the controller has one.
type waker struct {
	mutex sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
}

func (w *waker) bind(queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.queue = queue
}

func (w *waker) add(key types.NamespacedName) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.queue != nil {
		w.queue.Add(reconcile.Request{NamespacedName: key})
	}
}
