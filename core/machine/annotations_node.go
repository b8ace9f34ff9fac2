package machine

const (
	// scaleDownDisabledAnnotation keeps the cluster autoscaler from removing a Node.
	scaleDownDisabledAnnotation = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
	// ScaleDownDisabledMarkerAnnotation on a Node says that its annotation
	// cluster-autoscaler.kubernetes.io/scale-down-disabled was set by the core and may be taken back by it. Without
	// the marker that annotation is a user's.
	ScaleDownDisabledMarkerAnnotation = "machine.millwright.dev/scale-down-disabled"
	// OutdatedRevisionMarkerAnnotation on a Node says that its taint node.cluster.x-k8s.io/outdated-revision was set by the
	// core and may be taken back by it. Without the marker that taint is a user's.
	OutdatedRevisionMarkerAnnotation = "machine.millwright.dev/outdated-revision"
	// annotationTrue is the value of these while they hold.
	annotationTrue = "true"
)
