package machine

import (
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/conditions"
)

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

// deploymentChanged lets those updates of a MachineDeployment pass that concern Machines which exist: a new template
// or time of rollout may outdate them, and the revision says whether they are.
func deploymentChanged() predicate.Predicate {
	return onlyUpdates(func(before, after *clusterv1.MachineDeployment) bool {
		return revisionChanged(before, after) || !before.Spec.Rollout.After.Equal(&after.Spec.Rollout.After) ||
			!equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template)
	})
}

// setChanged lets those updates of a MachineSet pass that its Machines depend on. Its replicas and its status, which
// change with every Machine, do not.
func setChanged() predicate.Predicate {
	return onlyUpdates(func(before, after *clusterv1.MachineSet) bool {
		return revisionChanged(before, after) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
			!equality.Semantic.DeepEqual(before.Spec.Template.Spec, after.Spec.Template.Spec)
	})
}

func revisionChanged(before, after client.Object) bool {
	return before.GetAnnotations()[clusterv1.RevisionAnnotation] != after.GetAnnotations()[clusterv1.RevisionAnnotation]
}

// onlyUpdates lets updates pass that changed says yes to. The birth and the end of an owner are events of its Machines.
func onlyUpdates[O client.Object](changed func(before, after O) bool) predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		DeleteFunc:  func(event.DeleteEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc: func(e event.UpdateEvent) bool {
			before, ok := e.ObjectOld.(O)
			after, ok2 := e.ObjectNew.(O)
			return ok && ok2 && changed(before, after)
		},
	}
}
