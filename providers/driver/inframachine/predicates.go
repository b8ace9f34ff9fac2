package inframachine

import (
	"maps"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/predicates"
	contract "millwright.dev/contracts/inframachine"
	"millwright.dev/providers/driver"
)

// changedByOthers filters out this reconciler's own writes: status, launch record with provider ID, finalizer.
func changedByOthers() predicate.Predicate {
	return predicates.Changes(func(before, after client.Object) bool {
		return predicates.Resync(before, after) ||
			before.GetDeletionTimestamp().IsZero() != after.GetDeletionTimestamp().IsZero() ||
			!maps.Equal(before.GetLabels(), after.GetLabels()) ||
			!maps.Equal(annotationsOfOthers(before), annotationsOfOthers(after)) ||
			controllerUID(before) != controllerUID(after) ||
			controllerutil.ContainsFinalizer(before, Finalizer) && !controllerutil.ContainsFinalizer(after, Finalizer) ||
			isReadable(before) != isReadable(after) ||
			// The reconciler changes both at once.
			providerIDOf(before) != providerIDOf(after) &&
				before.GetAnnotations()[LaunchAnnotation] == after.GetAnnotations()[LaunchAnnotation]
	})
}

// changes are the events of the objects themselves that matter: changes by others, and own writes for which a reconcile waits.
func (r *Reconciler[M]) changes() predicate.Predicate {
	return predicate.Or(r.written.Awaited(), changedByOthers())
}

// isReadable returns whether the launch record can be read; a person repairs one that cannot.
func isReadable(obj client.Object) bool {
	_, err := readRecord(obj)
	return err == nil
}

func providerIDOf(obj client.Object) string {
	if machine, ok := obj.(driver.Object); ok {
		return machine.CommonSpec().ProviderID
	}
	return ""
}

func annotationsOfOthers(obj client.Object) map[string]string {
	annotations := maps.Clone(obj.GetAnnotations())
	delete(annotations, LaunchAnnotation)
	return annotations
}

func controllerUID(obj client.Object) types.UID {
	if ref := metav1.GetControllerOf(obj); ref != nil {
		return ref.UID
	}
	return ""
}

// machineChanges passes the changes of a Machine that a launch or a deletion may be waiting for: of those that end, Machines whose
// instances may not be terminated yet.
func machineChanges() predicate.Predicate {
	changes := predicates.ChangesWhileThere(func(before, after *clusterv1.Machine) bool {
		return ptr.Deref(before.Spec.Bootstrap.DataSecretName, "") != ptr.Deref(after.Spec.Bootstrap.DataSecretName, "") ||
			before.Spec.InfrastructureRef != after.Spec.InfrastructureRef ||
			before.Spec.FailureDomain != after.Spec.FailureDomain ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			!after.DeletionTimestamp.IsZero() && (before.Spec.ProviderID != after.Spec.ProviderID ||
				len(before.Status.Addresses) == 0 && len(after.Status.Addresses) > 0 ||
				contract.MayTerminate(before) != contract.MayTerminate(after))
	})
	changes.DeleteFunc = func(e event.DeleteEvent) bool {
		machine, ok := e.Object.(*clusterv1.Machine)
		return ok && !contract.MayTerminate(machine)
	}
	return changes
}

// clusterChanges passes the changes of a Cluster that concern all its machines.
func clusterChanges() predicate.Predicate {
	return predicates.ChangesWhileThere(func(before, after *clusterv1.Cluster) bool {
		return predicates.Paused(before, after) ||
			ptr.Deref(
				before.Status.Initialization.InfrastructureProvisioned,
				false,
			) != ptr.Deref(
				after.Status.Initialization.InfrastructureProvisioned,
				false,
			)
	})
}
