package machine

import (
	"context"
	"regexp"
	"slices"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/wake"
	"millwright.dev/contracts/version"
	"millwright.dev/core/drain"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
)

type workQueue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Options are what flags set.
type Options struct {
	// RemoteConditionsGracePeriod is how long the conditions about the Node stay after the API server of the target
	// cluster has answered last.
	RemoteConditionsGracePeriod time.Duration
	// SyncLabels and SyncAnnotations choose further labels and annotations that go to the Node, by their keys.
	SyncLabels, SyncAnnotations []*regexp.Regexp
	// PropagateTaints sets spec.taints of Machines on their Nodes.
	PropagateTaints bool
	// KeepOutdatedFromScaleDown keeps the cluster autoscaler from removing Nodes of an outdated revision.
	KeepOutdatedFromScaleDown bool
	// Drain configures the drains; Notify and Clock are set by the controller.
	Drain drain.Options
	// ForceDetach has forced drains delete the VolumeAttachments of the Node while its machine still runs.
	ForceDetach bool
	// PreserveByNode has the annotation by which a Machine is preserved count on its Node as well, where its kubelet may set it.
	PreserveByNode bool
	// DrainTimeout is how long a drain may take before it is forced, and volumes to be detached, for Machines that set no
	// timeout; 0 is DefaultDrainTimeout, a negative one no timeout.
	DrainTimeout time.Duration
}

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	if r.Written == nil {
		r.Written = &persist.Versions{}
	}
	r.waker = wake.New()
	r.Options.Drain.Notify = r.waker.Enqueue
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
		For(&clusterv1.Machine{}, builder.WithPredicates(
			predicates.HasWatchLabel(r.WatchFilter), predicate.Or(r.Written.Awaited(), predicates.Resyncs(), machineChanged()))).
		Watches(&clusterv1.Machine{}, r.toRivals()).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster), builder.WithPredicates(clusterChanged())).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofLabelledCluster), builder.WithPredicates(labelsChanged())).
		Watches(&clusterv1.MachineDrainRule{}, handler.EnqueueRequestsFromMapFunc(r.ofDrainRule),
			builder.WithPredicates(predicate.GenerationChangedPredicate{})).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(r.ofDeployment), builder.WithPredicates(deploymentChanged())).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.ofSet), builder.WithPredicates(setChanged())).
		WatchesMetadata(crd, external.ToReferrersOfCRD(r.Client, machines), builder.WithPredicates(external.DefinitionChanged())).
		WatchesRawSource(r.waker.Source()).
		WatchesRawSource(source.Func(r.subscribe)).
		WithOptions(options).
		Build(r)
	if err != nil {
		return errors.Wrap(err, "adding the Machine controller")
	}
	return r.Kinds.Bind(built, r.toDependents())
}

// subscribe has Machines enqueued for what happens in target clusters, from when the controller starts.
func (r *Reconciler) subscribe(ctx context.Context, _ workQueue) error {
	r.Connections.OnAnswer(r.waker.Enqueue)
	r.Connections.OnNode(func(cluster types.NamespacedName, node *corev1.Node) {
		for _, machine := range r.ofNode(ctx, cluster, node) {
			r.waker.Enqueue(machine.NamespacedName)
		}
	})
	r.Connections.OnConnectivity(func(cluster types.NamespacedName) {
		for _, machine := range r.list(ctx, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name}) {
			r.waker.Enqueue(machine.NamespacedName)
		}
	})
	return nil
}

// ofNode finds the Machines that a Node concerns: the one that is linked with it, and the one that has its provider ID. One whose
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

// lostToAnother is true for a Machine whose provider ID is another Machine's, by its conditions.
func lostToAnother(m *clusterv1.Machine) bool {
	return reasonOf(m.Status.Conditions, clusterv1.MachineNodeReadyCondition) == NodeOfAnotherMachineReason
}

// ofCluster finds the Machines of a Cluster.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.list(ctx, client.InNamespace(cluster.GetNamespace()), client.MatchingFields{index.Cluster: cluster.GetName()})
}

// ofDeployment finds the Machines of a MachineDeployment.
func (r *Reconciler) ofDeployment(ctx context.Context, deployment client.Object) []reconcile.Request {
	return r.list(
		ctx,
		client.InNamespace(deployment.GetNamespace()),
		client.MatchingLabels{clusterv1.MachineDeploymentNameLabel: deployment.GetName()},
	)
}

// ofSet finds the Machines of a MachineSet.
func (r *Reconciler) ofSet(ctx context.Context, obj client.Object) []reconcile.Request {
	set, ok := obj.(*clusterv1.MachineSet)
	if !ok {
		return nil
	}
	list := &clusterv1.MachineList{}
	err := r.Client.List(
		ctx,
		list,
		client.InNamespace(set.Namespace),
		client.MatchingFields{index.Cluster: set.Spec.ClusterName},
		client.UnsafeDisableDeepCopy,
	)
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

// ofDrainRule finds the Machines whose drains a MachineDrainRule may concern: all that are being deleted.
func (r *Reconciler) ofDrainRule(ctx context.Context, rule client.Object) []reconcile.Request {
	return r.deletingOf(ctx, client.InNamespace(rule.GetNamespace()))
}

// ofLabelledCluster finds the Machines of a Cluster that are being deleted.
func (r *Reconciler) ofLabelledCluster(ctx context.Context, cluster client.Object) []reconcile.Request {
	return r.deletingOf(ctx, client.InNamespace(cluster.GetNamespace()), client.MatchingFields{index.Cluster: cluster.GetName()})
}

// deletingOf lists the Machines that are being deleted.
func (r *Reconciler) deletingOf(ctx context.Context, options ...client.ListOption) []reconcile.Request {
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, append(options, client.UnsafeDisableDeepCopy)...); err != nil {
		// The cache fails only while the manager stops.
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list Machines that are being deleted")
		return nil
	}
	list.Items = slices.DeleteFunc(list.Items, func(m clusterv1.Machine) bool { return m.DeletionTimestamp.IsZero() })
	return external.Requests(list)
}

// toDependents maps an event of a provider's object to the Machines that refer to it, and the deletion of a control plane to
// those of its Cluster that are being deleted. One without finalizers goes without having been seen being deleted.
func (r *Reconciler) toDependents() handler.EventHandler {
	mapped := handler.EnqueueRequestsFromMapFunc(func(ctx context.Context, obj client.Object) []reconcile.Request {
		return r.dependents(ctx, obj, !obj.GetDeletionTimestamp().IsZero())
	})
	return handler.Funcs{
		CreateFunc: mapped.Create, UpdateFunc: mapped.Update, GenericFunc: mapped.Generic,
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workQueue) {
			for _, request := range r.dependents(ctx, e.Object, true) {
				queue.Add(request)
			}
		},
	}
}

// dependents are the Machines that an object concerns, which is going or gone, or stays.
func (r *Reconciler) dependents(ctx context.Context, obj client.Object, going bool) []reconcile.Request {
	machines := func() client.ObjectList { return &clusterv1.MachineList{} }
	clusters := func() client.ObjectList { return &clusterv1.ClusterList{} }
	found := external.Referrers(ctx, r.Client, machines, obj)
	if len(found) > 0 || !going {
		return found
	}
	for _, cluster := range external.Referrers(ctx, r.Client, clusters, obj) {
		found = append(found, r.deletingOf(ctx, client.InNamespace(cluster.Namespace), client.MatchingFields{index.Cluster: cluster.Name})...)
	}
	return found
}
