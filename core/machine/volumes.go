package machine

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/drain"
	"millwright.dev/core/outcome"
)

// defaultVolumeDetachSeconds is the timeout of a Machine that sets none. The Cluster API waits forever then; but
// pods that a drain leaves in place, as those of DaemonSets, may keep volumes attached as long as the Node lives.
const defaultVolumeDetachSeconds = 120

func volumesStart(d *clusterv1.MachineDeletionStatus) *metav1.Time {
	return &d.WaitForNodeVolumeDetachStartTime
}

// detachVolumes waits until the Node reports no attached volumes, so that none is torn from a running machine.
func (r *Reconciler) detachVolumes(_ context.Context, s *scope) outcome.Outcome {
	if s.skipNodeSteps() || hasAnnotation(s.machine, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation) {
		return outcome.Continue()
	}
	if s.connection == nil && s.mayGiveUp() {
		return outcome.Continue()
	}
	if s.connection != nil && (s.node == nil || drain.Unreachable(s.node) || len(s.node.Status.VolumesAttached) == 0) {
		return outcome.Continue()
	}
	seconds := ptr.To(ptr.Deref(s.machine.Spec.Deletion.NodeVolumeDetachTimeoutSeconds, defaultVolumeDetachSeconds))
	rest, limited := remaining(s.begin(volumesStart), seconds, s.now)
	if limited && rest <= 0 {
		s.timedOut("VolumeDetachTimedOut", "DetachVolumes", "Volumes are still attached to the Node after spec.deletion.nodeVolumeDetachTimeoutSeconds")
		return outcome.Continue()
	}
	const reason = clusterv1.MachineDeletingWaitingForVolumeDetachReason
	if s.connection == nil {
		return s.awaitConnection(reason, rest)
	}
	s.progress = deletion{reason, fmt.Sprintf("Waiting for %d volumes to be detached from Node %s", len(s.node.Status.VolumesAttached), s.node.Name)}
	if limited {
		return outcome.WaitFor(rest)
	}
	return outcome.Wait()
}
