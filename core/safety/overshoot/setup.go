package overshoot

import (
	"context"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/machines"
)

// gather is how long events of Machines are collected: counting costs as much as there are Machines, and many come at once.
const gather = 250 * time.Millisecond

// Setup adds a reconciler for MachineDeployments and one for MachineSets. Client, APIReader, Guard, Options and WatchFilter are
// taken from the pattern, Clock and Recorder if they are set. The manager's cache must have the indexes of core/index.
func Setup(mgr ctrl.Manager, pattern *Reconciler, options controller.Options) error {
	for _, ofSets := range []bool{false, true} {
		r := &Reconciler{
			Client: pattern.Client, APIReader: pattern.APIReader, Guard: pattern.Guard, Options: pattern.Options, WatchFilter: pattern.WatchFilter,
			Clock: pattern.Clock, Recorder: pattern.Recorder, ofSets: ofSets,
		}
		if r.Clock == nil {
			r.Clock = clock.RealClock{}
		}
		if r.Recorder == nil {
			r.Recorder = events.For(mgr, "overshoot")
		}
		if err := r.add(mgr, options); err != nil {
			return err
		}
	}
	return nil
}

func (r *Reconciler) add(mgr ctrl.Manager, options controller.Options) error {
	name, kind := "overshoot-machinedeployment", client.Object(&clusterv1.MachineDeployment{})
	if r.ofSets {
		name, kind = "overshoot-machineset", &clusterv1.MachineSet{}
	}
	build := ctrl.NewControllerManagedBy(mgr).Named(name).
		For(kind, builder.WithPredicates(predicates.HasWatchLabel(r.WatchFilter), predicate.Or(predicates.Resyncs(), changed()))).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.ofCluster),
			builder.WithPredicates(predicates.ChangesWhileThere(predicates.Paused))).
		Watches(&clusterv1.Machine{}, r.machineHandler())
	if !r.ofSets {
		build = build.Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(ofSet), builder.WithPredicates(changed()))
	}
	return errors.Wrapf(build.WithOptions(options).Complete(r), "building the controller %s", name)
}

type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// machineHandler passes Machines that come, begin to go, go, or change their owner. Those that come are counted by the API server, too.
func (r *Reconciler) machineHandler() handler.EventHandler {
	add := func(ctx context.Context, q queue, machine client.Object, comes bool) {
		key, ok := r.ofMachine(ctx, machine)
		if !ok {
			return
		}
		if comes {
			r.memory.came(key, r.Clock.Now())
		}
		q.AddAfter(ctrl.Request{NamespacedName: key}, gather)
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object, !e.IsInInitialList) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			moves := controllerOf(e.ObjectOld) != controllerOf(e.ObjectNew)
			if moves {
				add(ctx, q, e.ObjectOld, false)
			}
			if moves || e.ObjectOld.GetDeletionTimestamp().IsZero() != e.ObjectNew.GetDeletionTimestamp().IsZero() {
				add(ctx, q, e.ObjectNew, moves)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { add(ctx, q, e.Object, false) },
	}
}

func controllerOf(object metav1.Object) types.UID {
	if owner := metav1.GetControllerOf(object); owner != nil {
		return owner.UID
	}
	return ""
}

// ofSet is the deployment of a set.
func ofSet(_ context.Context, set client.Object) []ctrl.Request {
	owner := deploymentOf(set)
	if owner == nil {
		return nil
	}
	return []ctrl.Request{{NamespacedName: types.NamespacedName{Namespace: set.GetNamespace(), Name: owner.Name}}}
}

// ofMachine is the set of a Machine, or its deployment.
func (r *Reconciler) ofMachine(ctx context.Context, machine client.Object) (types.NamespacedName, bool) {
	owner := metav1.GetControllerOf(machine)
	if owner == nil {
		return r.creatorOf(ctx, machine)
	}
	if owner.Kind != "MachineSet" {
		return types.NamespacedName{}, false
	}
	key := types.NamespacedName{Namespace: machine.GetNamespace(), Name: owner.Name}
	set := &clusterv1.MachineSet{}
	if err := r.Client.Get(ctx, key, set); err != nil || set.UID != owner.UID {
		// Its own event brings the deployment.
		return key, r.ofSets
	}
	deployment := deploymentOf(set)
	if r.ofSets {
		return key, deployment == nil
	}
	if deployment == nil {
		return key, false
	}
	key.Name = deployment.Name
	return key, true
}

// ofCluster are the objects of a Cluster that is there, paused, or not paused any more.
func (r *Reconciler) ofCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	var requests []ctrl.Request
	for _, object := range r.objects(ctx, cluster.GetNamespace()) {
		if clusterOf(object) == cluster.GetName() {
			requests = append(requests, ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
		}
	}
	return requests
}

// objects are those of the kind in a namespace, by the cache. They must not be changed.
func (r *Reconciler) objects(ctx context.Context, namespace string) []client.Object {
	var objects []client.Object
	sets, deployments := &clusterv1.MachineSetList{}, &clusterv1.MachineDeploymentList{}
	var list client.ObjectList = deployments
	if r.ofSets {
		list = sets
	}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		// The cache fails only while the manager stops.
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list the objects of a namespace", "kind", r.kind())
		return nil
	}
	for i := range sets.Items {
		objects = append(objects, &sets.Items[i])
	}
	for i := range deployments.Items {
		objects = append(objects, &deployments.Items[i])
	}
	return objects
}

// creatorOf is the object that a Machine without a controller was created for.
func (r *Reconciler) creatorOf(ctx context.Context, machine client.Object) (types.NamespacedName, bool) {
	living, ok := machine.DeepCopyObject().(client.Object)
	if !ok {
		return types.NamespacedName{}, false
	}
	// The end of a Machine has to be seen as well.
	living.SetDeletionTimestamp(nil)
	for _, object := range r.objects(ctx, machine.GetNamespace()) {
		if machines.NewCreator(object).Counts(living) {
			return client.ObjectKeyFromObject(object), true
		}
	}
	return types.NamespacedName{}, false
}
