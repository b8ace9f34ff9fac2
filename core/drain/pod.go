package drain

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// Pod is what a drain caches of a pod: a thousand Nodes with a hundred pods each fit into little memory.
type Pod struct {
	// Key is the pod's namespace and name.
	Key types.NamespacedName
	// UID distinguishes a pod from its successor of the same name.
	UID types.UID
	// Labels are the pod's labels.
	Labels map[string]string
	// Mirror is true for a static pod, which only the kubelet's manifest directory can remove.
	Mirror bool
	// FirstSeen is when the drain has first seen the pod. Returned means that the pod came to the cordoned Node after its
	// pods had been listed: it tolerates the cordon, or spec.nodeName was set by other means.
	FirstSeen time.Time
	Returned  bool
	// DaemonSet is the UID of the DaemonSet that controls the pod, empty for all other pods.
	DaemonSet types.UID
	// Finished means that the pod has succeeded or failed, so that nothing runs any more.
	Finished bool
	// DeletionTimestamp is when the pod's grace period ends, nil when it is not being deleted.
	DeletionTimestamp *time.Time
	// Claims are the names of the PersistentVolumeClaims that the pod uses, in its namespace, those that its
	// ephemeral volumes have created included.
	Claims []string
	// Priority is the pod's priority; 0 when it has none.
	Priority int32
}

// trim returns what a drain needs of a pod.
func trim(pod *corev1.Pod) *Pod {
	trimmed := &Pod{
		Key:      types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
		UID:      pod.UID,
		Labels:   pod.Labels,
		Priority: ptr.Deref(pod.Spec.Priority, 0),
		Finished: pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed,
	}
	_, trimmed.Mirror = pod.Annotations[corev1.MirrorPodAnnotationKey]
	if owner := metav1.GetControllerOf(pod); owner != nil &&
		owner.Kind == "DaemonSet" && owner.APIVersion == appsv1.SchemeGroupVersion.String() {
		trimmed.DaemonSet = owner.UID
	}
	if pod.DeletionTimestamp != nil {
		ends := pod.DeletionTimestamp.Time
		trimmed.DeletionTimestamp = &ends
	}
	for i := range pod.Spec.Volumes {
		volume := &pod.Spec.Volumes[i]
		switch {
		case volume.PersistentVolumeClaim != nil:
			trimmed.Claims = append(trimmed.Claims, volume.PersistentVolumeClaim.ClaimName)
		case volume.Ephemeral != nil:
			trimmed.Claims = append(trimmed.Claims, pod.Name+"-"+volume.Name)
		}
	}
	return trimmed
}

// Unreachable reports whether nothing is known of the Node any more, so that its kubelet cannot be expected to
// end pods: its Ready condition is Unknown, which the node lifecycle controller sets when heartbeats stay out.
func Unreachable(node *corev1.Node) bool {
	for i := range node.Status.Conditions {
		if node.Status.Conditions[i].Type == corev1.NodeReady {
			return node.Status.Conditions[i].Status == corev1.ConditionUnknown
		}
	}
	return false
}
