package machine

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
)

// ToPhase derives the phase of a Machine from the rest of the object; the first line that applies counts.
//
//	Deleted       it has a deletion timestamp and no longer this core's finalizer: nothing is left but the finalizers of others
//	Deleting      it has a deletion timestamp
//	Updating      its condition Updating is True
//	Running       its Node is known and its infrastructure provisioned
//	Provisioned   its provider ID is known
//	Provisioning  its bootstrap data are there
//	Pending       otherwise
//
// Failed and Unknown are in the API and are never set: by the API, controllers do not set Failed any more, and there is no case for
// Unknown.
func ToPhase(m *clusterv1.Machine) clusterv1.MachinePhase {
	switch {
	case !m.DeletionTimestamp.IsZero() && !controllerutil.ContainsFinalizer(m, clusterv1.MachineFinalizer):
		return clusterv1.MachinePhaseDeleted
	case !m.DeletionTimestamp.IsZero():
		return clusterv1.MachinePhaseDeleting
	case meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.MachineUpdatingCondition):
		return clusterv1.MachinePhaseUpdating
	case m.Status.NodeRef.IsDefined() && ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false):
		return clusterv1.MachinePhaseRunning
	case m.Spec.ProviderID != "":
		return clusterv1.MachinePhaseProvisioned
	case ptr.Deref(m.Status.Initialization.BootstrapDataSecretCreated, false):
		return clusterv1.MachinePhaseProvisioning
	}
	return clusterv1.MachinePhasePending
}
