package machineset

import (
	"context"
	"slices"
	"strings"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/rand"
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
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/core/naming"
)

// SetupWithManager adds the reconciler to a manager, whose cache must have the indexes of core/index.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if r.Recorder == nil {
		r.Recorder = events.For(mgr, "machineset")
	}
	if r.Written == nil {
		r.Written = &persist.Versions{}
	}
	if r.newSeed == nil {
		r.newSeed = func() string { return rand.String(naming.RandomLength) }
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("machineset").
		For(&clusterv1.MachineSet{}, builder.WithPredicates(
			predicates.HasWatchLabel(r.WatchFilter), predicate.Or(r.Written.Awaited(), predicates.Resyncs(), setChanged()))).
		Watches(&clusterv1.Machine{}, r.machineHandler()).
		Watches(&clusterv1.MachineSet{}, handler.EnqueueRequestsFromMapFunc(r.setsWaitingBeside), builder.WithPredicates(makesRoom())).
		WatchesRawSource(source.Func(r.wakeAfterFreeze)).
		WatchesRawSource(source.Func(r.wakeWhenFrozen)).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.setsOfCluster), builder.WithPredicates(clusterChanged())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(r.setsOfDeployment),
			builder.WithPredicates(deploymentChanged())).
		WatchesMetadata(crd, handler.EnqueueRequestsFromMapFunc(r.setsOfCRD), builder.WithPredicates(external.DefinitionChanged())).
		WithOptions(options).
		Build(r)
	if err != nil {
		return errors.Wrap(err, "building the MachineSet controller")
	}
	r.kinds = &external.Kinds{Informers: r.Informers, Clock: r.Clock}
	return errors.Wrap(r.kinds.Bind(built, handler.EnqueueRequestsFromMapFunc(r.setsOfExternal)), "watching templates")
}

// queue is what handlers add requests to.
type queue = workqueue.TypedRateLimitingInterface[ctrl.Request]

// machineHandler asks for a reconcile of the set that a Machine belongs to, or might; spaced by pace.
func (r *Reconciler) machineHandler() handler.EventHandler {
	add := func(ctx context.Context, q queue, objects ...client.Object) {
		for _, object := range objects {
			for _, set := range r.setsOfMachine(ctx, object) {
				if delay := r.pace.delay(set, r.Clock.Now()); delay > 0 {
					q.AddAfter(ctrl.Request{NamespacedName: set}, delay)
				} else {
					q.Add(ctrl.Request{NamespacedName: set})
				}
			}
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { add(ctx, q, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			r.wakeWaiting(q, r.waitingForSlots(e.ObjectOld, e.ObjectNew, false))
			before, okBefore := e.ObjectOld.(*clusterv1.Machine)
			after, okAfter := e.ObjectNew.(*clusterv1.Machine)
			switch {
			case !okBefore || !okAfter || !machineChanged(before, after):
			case metav1.GetControllerOf(before) != nil && !sameController(before, after):
				add(ctx, q, before, after)
			default:
				add(ctx, q, after)
			}
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) {
			add(ctx, q, e.Object)
			r.wakeWaiting(q, r.waitingForSlots(e.Object, nil, e.DeleteStateUnknown))
		},
	}
}

// setsWaitingBeside are those that wait for a place while another set changes what it has or replaces.
func (r *Reconciler) setsWaitingBeside(_ context.Context, set client.Object) []ctrl.Request {
	return toRequests(r.forSlots.wake(set.GetNamespace()))
}

// wakeAfterFreeze has those that wait looked at when a freeze begins or ends.
func (r *Reconciler) wakeAfterFreeze(_ context.Context, q queue) error {
	if r.Freeze != nil {
		r.Freeze.OnChange(func(cluster client.ObjectKey) {
			r.wakeWaiting(q, r.forSlots.wakeWhere(func(namespace string) bool { return namespace == cluster.Namespace }))
		})
	}
	return nil
}

// wakeWaiting enqueues sets that have waited for a place.
func (r *Reconciler) wakeWaiting(q queue, sets []types.NamespacedName) {
	for _, set := range sets {
		q.Add(ctrl.Request{NamespacedName: set})
	}
}

func sameController(a, b metav1.Object) bool {
	ownerA, ownerB := metav1.GetControllerOf(a), metav1.GetControllerOf(b)
	return ownerA != nil && ownerB != nil && ownerA.UID == ownerB.UID
}

// setsOfMachine returns the set that controls a Machine; for one without a controller, those that select it.
func (r *Reconciler) setsOfMachine(ctx context.Context, machine client.Object) []types.NamespacedName {
	if owner := metav1.GetControllerOf(machine); owner != nil {
		if owner.Kind != setKind.Kind {
			return nil
		}
		return []types.NamespacedName{{Namespace: machine.GetNamespace(), Name: owner.Name}}
	}
	var keys []types.NamespacedName
	for _, request := range r.setsWhere(ctx, machine.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		selector, err := effectiveSelector(set)
		return err == nil && selector.Matches(labels.Set(machine.GetLabels()))
	}) {
		keys = append(keys, request.NamespacedName)
	}
	return keys
}

func (r *Reconciler) setsOfCluster(ctx context.Context, cluster client.Object) []ctrl.Request {
	if !cluster.GetDeletionTimestamp().IsZero() {
		// Should one of that name replace Machines, the API server is asked again.
		r.slots.Forget(client.ObjectKeyFromObject(cluster))
		forgetReplacements(client.ObjectKeyFromObject(cluster))
	}
	return r.setsWhere(ctx, cluster.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		return set.Spec.ClusterName == cluster.GetName()
	})
}

// setsOfDeployment returns the sets of a deployment: whether they are up to date may have changed.
func (r *Reconciler) setsOfDeployment(ctx context.Context, deployment client.Object) []ctrl.Request {
	return r.setsWhere(ctx, deployment.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		return metav1.IsControlledBy(set, deployment)
	})
}

// setsOfExternal returns the sets that refer to a template when it is created, changed or deleted, and those that wait for a
// control plane. What was created from templates is read too, but concerns its Machine alone.
func (r *Reconciler) setsOfExternal(ctx context.Context, template client.Object) []ctrl.Request {
	kind := template.GetObjectKind().GroupVersionKind().GroupKind()
	if !strings.HasSuffix(kind.Kind, clusterv1.TemplateSuffix) {
		return toRequests(r.forControlPlane.wake(controlPlaneKey(kind, client.ObjectKeyFromObject(template))))
	}
	return r.setsWhere(ctx, template.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		return slices.ContainsFunc(templateRefs(set), func(ref clusterv1.ContractVersionedObjectReference) bool {
			return groupKindOf(ref) == kind && ref.Name == template.GetName()
		})
	})
}

func toRequests(sets []types.NamespacedName) []ctrl.Request {
	var requests []ctrl.Request
	for _, set := range sets {
		requests = append(requests, ctrl.Request{NamespacedName: set})
	}
	return requests
}

// setsOfCRD returns the sets whose templates are of the kind that a CRD defines, or that wait for a control plane of it.
func (r *Reconciler) setsOfCRD(ctx context.Context, crd client.Object) []ctrl.Request {
	waiting := toRequests(r.forControlPlane.wakeWhere(func(awaited string) bool {
		return strings.HasPrefix(awaited, crd.GetName()+" ")
	}))
	return append(waiting, r.setsWhere(ctx, metav1.NamespaceAll, func(set *clusterv1.MachineSet) bool {
		return slices.ContainsFunc(templateRefs(set), func(ref clusterv1.ContractVersionedObjectReference) bool {
			return version.CRDName(groupKindOf(ref)) == crd.GetName()
		})
	})...)
}

func templateRefs(set *clusterv1.MachineSet) []clusterv1.ContractVersionedObjectReference {
	spec := &set.Spec.Template.Spec
	return []clusterv1.ContractVersionedObjectReference{spec.InfrastructureRef, spec.Bootstrap.ConfigRef}
}

func groupKindOf(ref clusterv1.ContractVersionedObjectReference) schema.GroupKind {
	return schema.GroupKind{Group: ref.APIGroup, Kind: ref.Kind}
}

// setsWhere looks through the sets in the cache. There are far fewer sets than Machines.
func (r *Reconciler) setsWhere(ctx context.Context, namespace string, matches func(*clusterv1.MachineSet) bool) []ctrl.Request {
	list := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
		// The cache fails only while the manager stops.
		ctrl.LoggerFrom(ctx).Error(err, "Failed to list MachineSets")
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
