package machine

import (
	"context"
	"regexp"
	"slices"
	"sync"
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
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/version"
	"millwright.dev/core/drain"
	"millwright.dev/core/external"
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
	// PropagateTaints brings spec.taints of Machines to their Nodes.
	PropagateTaints bool
	// KeepOutdatedFromScaleDown keeps the cluster autoscaler from removing Nodes of an outdated revision.
	KeepOutdatedFromScaleDown bool
	// Drain configures the drains; Notify and Clock are set by the controller.
	Drain drain.Options
	// ForceDetach has forced drains delete the VolumeAttachments of the Node while its machine still runs.
	ForceDetach bool
	// DrainTimeout is how long a drain may take before it is forced, and volumes to be detached, for Machines that do
	// not say; 0 is DefaultDrainTimeout, less is for ever.
	DrainTimeout time.Duration
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
		For(&clusterv1.Machine{}, builder.WithPredicates(predicates.HasWatchLabel(r.Options.WatchFilter), predicate.Or(r.versions.Awaited(), changed()))).
		Watches(&clusterv1.Machine{}, r.toRivals()).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(clusterChanged())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofLabelledCluster), builder.WithPredicates(onlyLabelsChanged())).
		Watches(&clusterv1.Cluster{}, r.onClusterGone()).
		Watches(&clusterv1.MachineDrainRule{}, handler.EnqueueRequestsFromMapFunc(r.ofDrainRule), builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(r.ofDeployment), builder.WithPredicates(deploymentChanged())).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.ofSet), builder.WithPredicates(setChanged())).
		WatchesMetadata(crd, external.ToReferrersOfCRD(r.Client, machines), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WatchesRawSource(source.Func(r.onTarget)).
		WithOptions(options).
		Build(r)
	if err != nil {
		return errors.Wrap(err, "adding the Machine controller")
	}
	return r.Kinds.Bind(built, r.toDependents())
}

// onTarget enqueues Machines for what happens in target clusters and in drains.
func (r *Reconciler) onTarget(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	r.wake.bind(queue)
	r.Connections.OnAnswer(r.wake.add)
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

// ofNode finds the Machines that a Node concerns: that which is linked with it, and that which has its provider ID. One whose
// provider ID is another Machine's is not concerned until that changes (toRivals).
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
			if m := &list.Items[i]; m.Spec.ClusterName == cluster.Name && (m.Status.NodeRef.Name == node.Name || !lostToAnother(m)) {
				found = append(found, reconcile.Request{NamespacedName: client.ObjectKeyFromObject(&list.Items[i])})
			}
		}
	}
	return found
}

// lostToAnother says whether the provider ID of a Machine was found to be another Machine's.
func lostToAnother(m *clusterv1.Machine) bool {
	return reasonOf(m.Status.Conditions, clusterv1.MachineNodeReadyCondition) == ReasonNodeOfAnotherMachine
}

// ofCluster finds the Machines of a Cluster.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.list(ctx, client.InNamespace(cluster.GetNamespace()), client.MatchingFields{index.Cluster: cluster.GetName()})
}

// ofDeployment finds the Machines of a MachineDeployment.
func (r *Reconciler) ofDeployment(ctx context.Context, deployment client.Object) []reconcile.Request {
	return r.list(ctx, client.InNamespace(deployment.GetNamespace()), client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: deployment.GetName()})
}

// ofSet finds the Machines of a MachineSet.
func (r *Reconciler) ofSet(ctx context.Context, obj client.Object) []reconcile.Request {
	set, ok := obj.(*clusterv1.MachineSet)
	if !ok {
		return nil
	}
	list := &clusterv1.MachineList{}
	err := r.Client.List(ctx, list, client.InNamespace(set.Namespace), client.MatchingFields{index.Cluster: set.Spec.ClusterName}, client.UnsafeDisableDeepCopy)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding the Machines of a MachineSet", "MachineSet", client.ObjectKeyFromObject(set))
		return nil
	}
	list.Items = slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return !metav1.IsControlledBy(&m, set) })
	return external.Requests(list)
}

func (r *Reconciler) list(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "Finding the Machines that an event concerns")
		return nil
	}
	return external.Requests(list)
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
