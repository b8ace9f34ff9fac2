package machine

import (
	"slices"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/predicates"
)

// machineChanged lets those updates of a Machine pass that concern its controller: what users and other controllers write, and not
// its own writes of the status, but for the addresses of a Machine that is being deleted: its infrastructure is deleted when it has them.
func machineChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.Machine) bool {
		return predicates.NotOnlyStatus(before, after) ||
			!after.DeletionTimestamp.IsZero() && !slices.Equal(before.Status.Addresses, after.Status.Addresses) ||
			!equality.Semantic.DeepEqual(
				conditions.Foreign(before.Status.Conditions, ownConditions...),
				conditions.Foreign(after.Status.Conditions, ownConditions...),
			)
	})
}

// clusterChanged lets those updates of a Cluster pass that change what its Machines may do.
func clusterChanged() predicate.Predicate {
	return predicates.Changes(func(before, after *clusterv1.Cluster) bool {
		return predicates.Paused(before, after) || before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero()
	})
}

// labelsChanged lets only those updates pass that change labels.
func labelsChanged() predicate.Predicate {
	return predicates.OnlyChanges(func(before, after client.Object) bool {
		return !equality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels())
	})
}

// deploymentChanged lets those updates of a MachineDeployment pass that concern Machines which exist: a new template or time of
// rollout may outdate them, and the revision decides whether they are. Creation and deletion of an owner are events of its
// Machines.
func deploymentChanged() predicate.Predicate {
	return predicates.OnlyChanges(func(before, after *clusterv1.MachineDeployment) bool {
		return revisionChanged(before, after) || !before.Spec.Rollout.After.Equal(&after.Spec.Rollout.After) ||
			!equality.Semantic.DeepEqual(before.Spec.Template, after.Spec.Template)
	})
}

// setChanged lets those updates of a MachineSet pass that its Machines depend on. Its replicas and its status, which change with
// every Machine, do not.
func setChanged() predicate.Predicate {
	return predicates.OnlyChanges(func(before, after *clusterv1.MachineSet) bool {
		return revisionChanged(before, after) ||
			!equality.Semantic.DeepEqual(before.OwnerReferences, after.OwnerReferences) ||
			!equality.Semantic.DeepEqual(before.Spec.Template.Spec, after.Spec.Template.Spec)
	})
}

func revisionChanged(before, after client.Object) bool {
	return before.GetAnnotations()[clusterv1.RevisionAnnotation] != after.GetAnnotations()[clusterv1.RevisionAnnotation]
}

// identityChanged is true for an update that may change whose a provider ID is.
func identityChanged(before, after *clusterv1.Machine) bool {
	const infrastructure = clusterv1.MachineInfrastructureReadyCondition
	if lostToAnother(before) != lostToAnother(after) {
		// It has observed a rival that may not have observed it: their connections are established one after the other.
		return true
	}
	return before.Spec.ProviderID != after.Spec.ProviderID ||
		before.Spec.ClusterName != after.Spec.ClusterName ||
		before.Spec.InfrastructureRef != after.Spec.InfrastructureRef ||
		before.Status.NodeRef != after.Status.NodeRef ||
		ptr.Deref(
			before.Status.Initialization.InfrastructureProvisioned,
			false,
		) != ptr.Deref(
			after.Status.Initialization.InfrastructureProvisioned,
			false,
		) ||
		before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
		reasonOf(before.Status.Conditions, infrastructure) != reasonOf(after.Status.Conditions, infrastructure)
}
