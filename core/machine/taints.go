package machine

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// syncTaints changes the taints of a Node to what is desired and reports whether any changed:
//   - node.cluster.x-k8s.io/uninitialized is removed, since it holds pods off only until the first synchronization;
//   - those of spec.taints are added: Always ones as long as the Machine has them, OnInitialization ones once;
//   - node.cluster.x-k8s.io/outdated-revision is there while the Machine is outdated, unless it is a user's.
//
// Taints are one and the same when key and effect are. Those of others stay.
func syncTaints(node *corev1.Node, desired DesiredNode) bool {
	before := node.Spec.Taints
	after := slices.Clone(before)
	after = without(after, clusterv1.NodeUninitializedTaint)
	if desired.PropagateTaints {
		after = propagate(node, after, desired)
	}
	if !desired.OutdatedUnknown {
		after = syncOutdated(node, after, desired.Outdated)
	}
	node.Spec.Taints = after
	return !slices.EqualFunc(before, after, func(a, b corev1.Taint) bool {
		return a.MatchTaint(&b) && a.Value == b.Value
	})
}

// syncOutdated adds or removes the taint of an outdated revision. One without the marker, or with a value, which
// the core never gives it, is a user's and stays.
func syncOutdated(node *corev1.Node, taints []corev1.Taint, outdated bool) []corev1.Taint {
	at := slices.IndexFunc(taints, func(have corev1.Taint) bool { return have.MatchTaint(&clusterv1.NodeOutdatedRevisionTaint) })
	_, marked := node.Annotations[OutdatedRevisionMarkerAnnotation]
	own := marked && at >= 0 && taints[at].Value == clusterv1.NodeOutdatedRevisionTaint.Value
	switch {
	case outdated && at < 0:
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, OutdatedRevisionMarkerAnnotation, annotationTrue)
		return append(taints, clusterv1.NodeOutdatedRevisionTaint)
	case outdated && own:
		return taints
	case own:
		taints = slices.Delete(taints, at, at+1)
	}
	delete(node.Annotations, OutdatedRevisionMarkerAnnotation)
	return taints
}

// propagate adds the taints of the Machine to the list. Which Always ones came from the Machine is kept in an annotation of the Node;
// only those are removed. While the annotation is not there, OnInitialization taints have not had their turn.
func propagate(node *corev1.Node, taints []corev1.Taint, desired DesiredNode) []corev1.Taint {
	value, initialized := node.Annotations[clusterv1.TaintsFromMachineAnnotation]
	owned, kept := map[string]string{}, map[string]bool{}
	for _, taint := range desired.Taints {
		id := taintID(taint.Key, taint.Effect)
		kept[id] = true
		once := taint.Propagation == clusterv1.MachineTaintPropagationOnInitialization
		if !once {
			owned[id] = ""
		}
		if !once || !initialized {
			taints = with(taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		}
	}
	for _, id := range tracked(value) {
		if !kept[id] {
			taints = slices.DeleteFunc(taints, func(have corev1.Taint) bool { return taintID(have.Key, have.Effect) == id })
		}
	}
	metav1.SetMetaDataAnnotation(&node.ObjectMeta, clusterv1.TaintsFromMachineAnnotation, track(owned))
	return taints
}

// taintID is how a taint is called in the annotation.
func taintID(key string, effect corev1.TaintEffect) string {
	return strings.Join([]string{key, string(effect)}, ":")
}

// with returns the list with the taint, which replaces one of the same key and effect.
func with(taints []corev1.Taint, taint corev1.Taint) []corev1.Taint {
	for i := range taints {
		if taints[i].MatchTaint(&taint) {
			if taints[i].Value != taint.Value {
				taints[i] = taint
			}
			return taints
		}
	}
	return append(taints, taint)
}

// without returns the list without the taint.
func without(taints []corev1.Taint, taint corev1.Taint) []corev1.Taint {
	return slices.DeleteFunc(taints, func(have corev1.Taint) bool { return have.MatchTaint(&taint) })
}
