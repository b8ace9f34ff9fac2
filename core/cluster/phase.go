package cluster

import (
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// ToPhase derives the phase of a Cluster; the first line that applies counts.
//
//	Deleting      it has a deletion timestamp
//	Provisioned   infrastructure is provisioned (or not needed), and the endpoint is known or the API server has answered
//	Provisioning  it has an infrastructureRef or a controlPlaneRef
//	Pending       otherwise: it is its kubeconfig alone, and that has not worked yet
func ToPhase(cluster *clusterv1.Cluster) clusterv1.ClusterPhase {
	initialization := cluster.Status.Initialization
	reachable := cluster.Spec.ControlPlaneEndpoint.IsValid() || ptr.Deref(initialization.ControlPlaneInitialized, false)
	switch {
	case !cluster.DeletionTimestamp.IsZero():
		return clusterv1.ClusterPhaseDeleting
	case ptr.Deref(initialization.InfrastructureProvisioned, false) && reachable:
		return clusterv1.ClusterPhaseProvisioned
	case cluster.Spec.InfrastructureRef.IsDefined(), cluster.Spec.ControlPlaneRef.IsDefined():
		return clusterv1.ClusterPhaseProvisioning
	}
	return clusterv1.ClusterPhasePending
}
