package machineset

import (
	"context"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/version"
)

// setChanged lets events of sets pass but those that only the status has changed for: that is our own write.
func setChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, after := e.ObjectOld, e.ObjectNew
		return before.GetGeneration() != after.GetGeneration() ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			!equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels()) ||
			!equality.Semantic.DeepEqual(before.GetAnnotations(), after.GetAnnotations()) ||
			!equality.Semantic.DeepEqual(before.GetOwnerReferences(), after.GetOwnerReferences()) ||
			!slices.Equal(before.GetFinalizers(), after.GetFinalizers())
	}}
}

// clusterChanged lets events pass that matter to sets: a Cluster that appears, is paused or unpaused, or that gets
// another control plane or another version.
func clusterChanged() predicate.Predicate {
	return predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		before, okBefore := e.ObjectOld.(*clusterv1.Cluster)
		after, okAfter := e.ObjectNew.(*clusterv1.Cluster)
		return okBefore && okAfter && (ptr.Deref(before.Spec.Paused, false) != ptr.Deref(after.Spec.Paused, false) ||
			before.Spec.ControlPlaneRef != after.Spec.ControlPlaneRef ||
			before.Spec.Topology.Version != after.Spec.Topology.Version ||
			upgradeStep(before) != upgradeStep(after))
	}}
}

// deploymentChanged lets events pass that matter to the sets of a deployment: all of its spec, and the revision that
// it is at.
func deploymentChanged() predicate.Predicate {
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.Funcs{
		CreateFunc: func(event.CreateEvent) bool { return false }, DeleteFunc: func(event.DeleteEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			return e.ObjectOld.GetAnnotations()[clusterv1.RevisionAnnotation] != e.ObjectNew.GetAnnotations()[clusterv1.RevisionAnnotation]
		},
	})
}

// machineChanged says whether a change of a Machine can matter to its set.
func machineChanged(before, after *clusterv1.Machine) bool {
	return before.Generation != after.Generation ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		before.Status.NodeRef.IsDefined() != after.Status.NodeRef.IsDefined() ||
		!equality.Semantic.DeepEqual(before.Status.NodeInfo, after.Status.NodeInfo) ||
		!equality.Semantic.DeepEqual(before.Labels, after.Labels) ||
		!equality.Semantic.DeepEqual(before.Annotations, after.Annotations) ||
		!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
		slices.ContainsFunc(watchedConditions, func(kind string) bool { return conditionChanged(before, after, kind) })
}

// watchedConditions are the conditions of Machines that the status of a set, or the choice of Machines to
// delete, depends on.
var watchedConditions = []string{
	clusterv1.MachineReadyCondition,
	clusterv1.MachineAvailableCondition,
	clusterv1.MachineUpToDateCondition,
	clusterv1.MachineNodeHealthyCondition,
	clusterv1.MachineHealthCheckSucceededCondition,
	clusterv1.MachineOwnerRemediatedCondition,
}

func conditionChanged(before, after *clusterv1.Machine, kind string) bool {
	a, b := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(after.Status.Conditions, kind)
	if a == nil || b == nil {
		return a != b
	}
	return a.Status != b.Status || a.Reason != b.Reason || a.Message != b.Message
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
			for _, set := range r.waitingForSlots(e.Object, e.DeleteStateUnknown) {
				q.Add(ctrl.Request{NamespacedName: set})
			}
		},
	}
}

func sameController(a, b metav1.Object) bool {
	ownerA, ownerB := metav1.GetControllerOf(a), metav1.GetControllerOf(b)
	return ownerA != nil && ownerB != nil && ownerA.UID == ownerB.UID
}

// setsOfMachine returns the set that controls a Machine; for one that nobody controls, those that select it.
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
	return r.setsWhere(ctx, cluster.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		return set.Spec.ClusterName == cluster.GetName()
	})
}

// setsOfDeployment returns the sets of a deployment: whether they are up to date may have changed.
func (r *Reconciler) setsOfDeployment(ctx context.Context, deployment client.Object) []ctrl.Request {
	if !deployment.GetDeletionTimestamp().IsZero() {
		// Should it remediate once more, the API server is asked again.
		r.slots.forget(deployment.GetUID())
	}
	return r.setsWhere(ctx, deployment.GetNamespace(), func(set *clusterv1.MachineSet) bool {
		return metav1.IsControlledBy(set, deployment)
	})
}

// setsOfExternal returns the sets that refer to a template, when it appears, changes or goes, and those that wait for
// a control plane. What was made from templates is read too, but concerns its Machine alone.
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
		// The cache can only refuse while the manager stops.
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
