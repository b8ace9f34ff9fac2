package machinehealth

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/wake"
)

// pace is for how long an event of a Machine or a Node waits for others, which are of the same round then: a rollout of a thousand
// Machines is a few rounds a second at most.
const pace = 500 * time.Millisecond

type workQueue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// SetupWithManager adds the controller to the manager.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	if r.Written == nil {
		r.Written = &persist.Versions{}
	}
	waker := wake.New()
	r.wake = waker.EnqueueAfter
	err := ctrl.NewControllerManagedBy(mgr).Named("machinehealth").
		Watches(&clusterv1.Cluster{}, r.onCluster(), builder.WithPredicates(predicate.Or(predicates.Resyncs(), clusterChanged()))).
		Watches(&clusterv1.MachineHealthCheck{}, r.onEach(r.ofCheck), builder.WithPredicates(checkChanged())).
		Watches(&clusterv1.Machine{}, r.onEach(r.ofMachine), builder.WithPredicates(predicate.Or(r.Written.Awaited(), machineChanged()))).
		Watches(&clusterv1.MachineDeployment{}, r.onEach(r.ofDeployment), builder.WithPredicates(timeoutsChanged())).
		WatchesRawSource(waker.Source()).
		WatchesRawSource(source.Func(r.subscribe)).
		WithOptions(options).Complete(r)
	return errors.Wrap(err, "adding the controller that judges Machines")
}

// subscribe has Clusters enqueued for what happens in target clusters and for the end of a freeze, from when the controller starts.
func (r *Reconciler) subscribe(context.Context, workQueue) error {
	r.Connections.OnNode(func(cluster types.NamespacedName, node *corev1.Node) {
		if r.memory.isActive(cluster) && r.nodes.changed(cluster, node, r.isGone(cluster, node)) {
			r.wake(cluster, pace)
		}
	})
	r.Connections.OnConnectivity(func(cluster types.NamespacedName) {
		if r.memory.isActive(cluster) {
			r.wake(cluster, 0)
		}
	})
	r.freeze().OnChange(func(cluster client.ObjectKey) {
		if r.memory.isActive(cluster) {
			r.wake(cluster, 0)
		}
	})
	return nil
}

// isGone reports whether a Node that an event is about is not there any more.
func (r *Reconciler) isGone(cluster types.NamespacedName, node *corev1.Node) bool {
	connection, err := r.Connections.Get(cluster)
	if err != nil {
		// While a connection is being made its Nodes are read; the round that follows sees all of them.
		return false
	}
	found, err := connection.Node(node.Name)
	return err == nil && (found == nil || found.UID != node.UID)
}

// onEach enqueues the Clusters that an object is of, both when it moves.
func (r *Reconciler) onEach(clusters func(client.Object) (client.ObjectKey, time.Duration, bool)) handler.EventHandler {
	add := func(q workQueue, objects ...client.Object) {
		for _, object := range objects {
			if key, after, ok := clusters(object); ok && key.Name != "" {
				q.AddAfter(ctrl.Request{NamespacedName: key}, after)
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workQueue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workQueue) { add(q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q workQueue) { add(q, e.Object) },
	}
}

// onCluster enqueues a Cluster, and forgets one that no longer exists.
func (r *Reconciler) onCluster() handler.EventHandler {
	add := func(q workQueue, object client.Object) {
		q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q workQueue) { add(q, e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q workQueue) { add(q, e.ObjectNew) },
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workQueue) {
			key := client.ObjectKeyFromObject(e.Object)
			r.memory.setActive(key, false)
			r.nodes.forget(key)
			collected.set(key, nil)
		},
	}
}

func (r *Reconciler) ofCheck(object client.Object) (client.ObjectKey, time.Duration, bool) {
	found, ok := object.(*clusterv1.MachineHealthCheck)
	if !ok {
		return client.ObjectKey{}, 0, false
	}
	return client.ObjectKey{Namespace: found.Namespace, Name: found.Spec.ClusterName}, 0, true
}

// ofMachine is the Cluster of a Machine, if there is anything to judge by, or the Machine still has what an earlier process has
// concluded.
func (r *Reconciler) ofMachine(object client.Object) (client.ObjectKey, time.Duration, bool) {
	found, ok := object.(*clusterv1.Machine)
	if !ok {
		return client.ObjectKey{}, 0, false
	}
	key := client.ObjectKey{Namespace: found.Namespace, Name: found.Spec.ClusterName}
	return key, pace, r.memory.isActive(key) || ours(found)
}

func (r *Reconciler) ofDeployment(object client.Object) (client.ObjectKey, time.Duration, bool) {
	found, ok := object.(*clusterv1.MachineDeployment)
	if !ok {
		return client.ObjectKey{}, 0, false
	}
	return client.ObjectKey{Namespace: found.Namespace, Name: found.Spec.ClusterName}, pace, r.Options.Defaults.Enabled()
}
