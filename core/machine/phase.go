package machine

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ToPhase concludes the phase of a Machine from the rest of the object; the first line that applies counts.
//
//	Deleting      it has a deletion timestamp
//	Running       its Node is known and its infrastructure provisioned
//	Provisioned   its provider ID is known
//	Provisioning  its bootstrap data are there
//	Pending       otherwise
func ToPhase(m *clusterv1.Machine) clusterv1.MachinePhase {
	switch {
	case !m.DeletionTimestamp.IsZero():
		return clusterv1.MachinePhaseDeleting
	case m.Status.NodeRef.IsDefined() && ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false):
		return clusterv1.MachinePhaseRunning
	case m.Spec.ProviderID != "":
		return clusterv1.MachinePhaseProvisioned
	case ptr.Deref(m.Status.Initialization.BootstrapDataSecretCreated, false):
		return clusterv1.MachinePhaseProvisioning
	}
	return clusterv1.MachinePhasePending
}
