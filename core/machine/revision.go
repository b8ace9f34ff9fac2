package machine

import (
	"strconv"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// outdatedRevision says whether the Machine belongs to an earlier revision of its MachineDeployment than the present
// one. A set without a revision is older than all; what is no number says nothing.
func (s *scope) outdatedRevision() bool {
	if s.machineSet == nil || s.machineDeployment == nil {
		return false
	}
	own, ok := revisionOf(s.machineSet)
	present, ok2 := revisionOf(s.machineDeployment)
	return ok && ok2 && own < present
}

// revisionOf reads the revision of a MachineDeployment or MachineSet, zero when it has none yet.
func revisionOf(obj client.Object) (revision int64, ok bool) {
	text, present := obj.GetAnnotations()[clusterv1.RevisionAnnotation]
	if !present {
		return 0, true
	}
	revision, err := strconv.ParseInt(text, 10, 64)
	return revision, err == nil
}

// syncScaleDown keeps the cluster autoscaler from removing a Node that a rollout is about to replace: the autoscaler
// would lower the replicas of the deployment with it, and the rollout would make the Machine anew elsewhere. An
// annotation without the marker is a user's, as is one whose value has been changed since.
func syncScaleDown(node *corev1.Node, outdated, disabled bool) {
	value, present := node.Annotations[scaleDownDisabledAnnotation]
	_, marked := node.Annotations[ScaleDownDisabledMarkerAnnotation]
	own := marked && value == annotationTrue
	switch {
	case disabled && outdated && !present:
		node.Annotations[scaleDownDisabledAnnotation] = annotationTrue
		node.Annotations[ScaleDownDisabledMarkerAnnotation] = annotationTrue
	case disabled && outdated && own:
	default:
		if own {
			delete(node.Annotations, scaleDownDisabledAnnotation)
		}
		delete(node.Annotations, ScaleDownDisabledMarkerAnnotation)
	}
}
