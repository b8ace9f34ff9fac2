// Package paused finds out what pauses an object, and reports it in condition Paused
// (https://cluster-api.sigs.k8s.io/developer/providers/contracts/infra-machine#inframachine-pausing).
package paused

import (
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
)

// By returns what pauses the object: spec.paused of its Cluster, its own annotation, or both; nothing when it is not paused.
// cluster may be nil. For a Cluster, hand it in twice.
func By(obj metav1.Object, cluster *clusterv1.Cluster) []string {
	var by []string
	if cluster != nil && ptr.Deref(cluster.Spec.Paused, false) {
		by = append(by, "spec.paused of Cluster "+cluster.Name+" is true")
	}
	// The value does not count: https://cluster-api.sigs.k8s.io/reference/api/labels-and-annotations
	if _, annotated := obj.GetAnnotations()[clusterv1.PausedAnnotation]; annotated {
		by = append(by, "the annotation "+clusterv1.PausedAnnotation+" is set")
	}
	return by
}

// Condition is condition Paused for what By has returned.
func Condition(by []string) metav1.Condition {
	if len(by) == 0 {
		return conditions.False(clusterv1.PausedCondition, clusterv1.NotPausedReason, "")
	}
	return conditions.True(clusterv1.PausedCondition, clusterv1.PausedReason, strings.Join(by, ", and "))
}
