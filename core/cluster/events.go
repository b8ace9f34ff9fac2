package cluster

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// tell emits the events for what has been written. That the connection is lost is told here, once for each Cluster,
// and not by each of its Machines.
func (r *Reconciler) tell(s *scope) {
	before, after := s.original.Status, s.cluster.Status
	if !ptr.Deref(before.Initialization.ControlPlaneInitialized, false) && ptr.Deref(after.Initialization.ControlPlaneInitialized, false) {
		r.Recorder.Eventf(s.cluster, nil, corev1.EventTypeNormal, "ControlPlaneInitialized", "Initialize", "The API server of the target cluster answers")
		return
	}
	const probe = clusterv1.ClusterRemoteConnectionProbeCondition
	switch was, is := meta.IsStatusConditionTrue(before.Conditions, probe), meta.FindStatusCondition(after.Conditions, probe); {
	case is == nil:
	case was && meta.IsStatusConditionTrue(after.Conditions, probe):
		if is.Message != "" && is.Message != meta.FindStatusCondition(before.Conditions, probe).Message {
			r.Recorder.Eventf(s.cluster, nil, corev1.EventTypeWarning, "KubeconfigNotUsed", "Connect", "%.1000s", is.Message)
		}
	case was && !meta.IsStatusConditionTrue(after.Conditions, probe):
		r.Recorder.Eventf(s.cluster, nil, corev1.EventTypeWarning, "RemoteConnectionLost", "Probe", "%s", is.Message)
	case !was && meta.IsStatusConditionTrue(after.Conditions, probe) && ptr.Deref(after.Initialization.ControlPlaneInitialized, false):
		// Before a control plane is initialized, which is told by itself, there is nothing to restore.
		r.Recorder.Eventf(s.cluster, nil, corev1.EventTypeNormal, "RemoteConnectionRestored", "Probe", "The API server of the target cluster answers")
	}
}
