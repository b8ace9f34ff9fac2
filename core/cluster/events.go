package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reasons of events.
const (
	// ReasonControlPlaneInitialized means that the API server of the target cluster has answered for the first time, or that the
	// control plane provider reports its control plane as initialized.
	ReasonControlPlaneInitialized = "ControlPlaneInitialized"
	// ReasonRemoteConnectionLost means that RemoteConnectionProbe is not True any more.
	ReasonRemoteConnectionLost = "RemoteConnectionLost"
	// ReasonRemoteConnectionRestored means that it is True again.
	ReasonRemoteConnectionRestored = "RemoteConnectionRestored"
	// ReasonKubeconfigNotUsed means that the connection goes on with an earlier kubeconfig than the Secret has.
	ReasonKubeconfigNotUsed = "KubeconfigNotUsed"
	// ReasonRemediationFrozen means that RemediationAllowed has become False, or has another reason: no Machine is replaced.
	ReasonRemediationFrozen = "RemediationFrozen"
	// ReasonRemediationResumed means that it has become True again.
	ReasonRemediationResumed = "RemediationResumed"
)

// recordEvents records events for what has changed in the status. A lost connection is recorded here, once for each Cluster, and
// not by each of its Machines.
func (s *scope) recordEvents() {
	before, after := s.Original.Status, s.Object.Status
	s.recordFreeze()
	if !ptr.Deref(before.Initialization.ControlPlaneInitialized, false) && ptr.Deref(after.Initialization.ControlPlaneInitialized, false) {
		s.events.Normal(ReasonControlPlaneInitialized, "Initialize", "The API server of the target cluster answers")
		return
	}
	const probe = clusterv1.ClusterRemoteConnectionProbeCondition
	switch was, is := meta.IsStatusConditionTrue(before.Conditions, probe), meta.FindStatusCondition(after.Conditions, probe); {
	case is == nil:
	case was && meta.IsStatusConditionTrue(after.Conditions, probe):
		if s.kubeconfigError != "" && is.Message != meta.FindStatusCondition(before.Conditions, probe).Message {
			s.events.Warning(ReasonKubeconfigNotUsed, "Connect", "%s", is.Message)
		}
	case was && !meta.IsStatusConditionTrue(after.Conditions, probe):
		s.events.Warning(ReasonRemoteConnectionLost, "Probe", "%s", is.Message)
	case !was && meta.IsStatusConditionTrue(after.Conditions, probe) && ptr.Deref(after.Initialization.ControlPlaneInitialized, false):
		// Before a control plane is initialized, which has an event of its own, there is nothing to restore.
		s.events.Normal(ReasonRemoteConnectionRestored, "Probe", "The API server of the target cluster answers")
	}
}
