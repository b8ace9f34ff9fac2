package machine

import (
	corev1 "k8s.io/api/core/v1"

	"millwright.dev/core/machines"
)

const (
	// scaleDownDisabledAnnotation keeps the cluster autoscaler from removing a Node.
	scaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ScaleDownDisabledMarkerAnnotation on a Node marks that its annotation
	// cluster-autoscaler.kubernetes.io/scale-down-disabled was set by the core and may be removed by it. Without
	// the marker that annotation is a user's.
	ScaleDownDisabledMarkerAnnotation = "machine.millwright.dev/scale-down-disabled"
	// OutdatedRevisionMarkerAnnotation on a Node marks that its taint node.cluster.x-k8s.io/outdated-revision was set by the
	// core and may be removed by it. Without the marker that taint is a user's.
	OutdatedRevisionMarkerAnnotation = "machine.millwright.dev/outdated-revision"
	// annotationTrue is the value of these while they hold.
	annotationTrue = "true"
)

// outdatedRevision reports whether the Machine belongs to an earlier revision of its MachineDeployment than the present
// one. A set without a revision is older than all; a revision that is no number does not count.
func (s *scope) outdatedRevision() bool {
	if s.machineSet == nil || s.machineDeployment == nil {
		return false
	}
	own, ok := machines.ParseRevision(s.machineSet)
	present, ok2 := machines.ParseRevision(s.machineDeployment)
	return ok && ok2 && own < present
}

// syncScaleDown keeps the cluster autoscaler from removing a Node that a rollout is about to replace: the autoscaler
// would lower the replicas of the deployment with it, and the rollout would recreate the Machine elsewhere. An
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
