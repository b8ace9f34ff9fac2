package cluster

import (
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Reasons of events.
const (
	// ControlPlaneInitializedEvent means that the API server of the target cluster has answered for the first time, or that the
	// control plane provider reports its control plane as initialized.
	ControlPlaneInitializedEvent = "ControlPlaneInitialized"
	// RemoteConnectionLostEvent means that RemoteConnectionProbe is not True any more.
	RemoteConnectionLostEvent = "RemoteConnectionLost"
	// RemoteConnectionRestoredEvent means that it is True again.
	RemoteConnectionRestoredEvent = "RemoteConnectionRestored"
	// KubeconfigNotUsedEvent means that the connection continues with an earlier kubeconfig than the Secret has.
	KubeconfigNotUsedEvent = "KubeconfigNotUsed"
	// RemediationFrozenEvent means that RemediationAllowed has become False, or has another reason: no Machine is replaced.
	RemediationFrozenEvent = "RemediationFrozen"
	// RemediationResumedEvent means that it has become True again.
	RemediationResumedEvent = "RemediationResumed"
)

// recordEvents records events for what has changed in the status. A lost connection is recorded here, once for each Cluster, and
// not by each of its Machines.
func (s *scope) recordEvents() {
	before, after := s.Original.Status, s.Object.Status
	s.recordFreeze()
	if !ptr.Deref(before.Initialization.ControlPlaneInitialized, false) && ptr.Deref(after.Initialization.ControlPlaneInitialized, false) {
		s.events.Normal(ControlPlaneInitializedEvent, "Initialize", "The API server of the target cluster answers")
		return
	}
	const probe = clusterv1.ClusterRemoteConnectionProbeCondition
	switch was, is := meta.IsStatusConditionTrue(before.Conditions, probe), meta.FindStatusCondition(after.Conditions, probe); {
	case is == nil:
	case was && meta.IsStatusConditionTrue(after.Conditions, probe):
		if s.kubeconfigError != "" && is.Message != meta.FindStatusCondition(before.Conditions, probe).Message {
			s.events.Warning(KubeconfigNotUsedEvent, "Connect", "%s", is.Message)
		}
	case was && !meta.IsStatusConditionTrue(after.Conditions, probe):
		s.events.Warning(RemoteConnectionLostEvent, "Probe", "%s", is.Message)
	case !was && meta.IsStatusConditionTrue(after.Conditions, probe) && ptr.Deref(after.Initialization.ControlPlaneInitialized, false):
		// Before a control plane is initialized, which has an event of its own, there is nothing to restore.
		s.events.Normal(RemoteConnectionRestoredEvent, "Probe", "The API server of the target cluster answers")
	}
}
