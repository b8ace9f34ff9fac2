package machine

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// syncTaints changes the taints of a Node to what is wished and says whether any changed:
//   - node.cluster.x-k8s.io/uninitialized goes, since it holds pods off only until the first synchronization;
//   - those of spec.taints come: Always ones as long as the Machine has them, OnInitialization ones once;
//   - node.cluster.x-k8s.io/outdated-revision comes and goes with the Machine's being outdated.
//
// Taints are one and the same when key and effect are. Those of others stay.
func syncTaints(node *corev1.Node, wishes Wishes) bool {
	before := node.Spec.Taints
	after := slices.Clone(before)
	after = without(after, clusterv1.NodeUninitializedTaint)
	if wishes.PropagateTaints {
		after = propagate(node, after, wishes.Taints)
	}
	if wishes.Outdated {
		after = with(after, clusterv1.NodeOutdatedRevisionTaint)
	} else {
		after = without(after, clusterv1.NodeOutdatedRevisionTaint)
	}
	node.Spec.Taints = after
	return !slices.EqualFunc(before, after, func(a, b corev1.Taint) bool {
		return a.MatchTaint(&b) && a.Value == b.Value
	})
}

// propagate brings the taints of the Machine into the list. Which Always ones came from the Machine is kept in an
// annotation of the Node, so that only those are removed; that the annotation is there at all says that the
// OnInitialization ones have had their turn.
func propagate(node *corev1.Node, taints []corev1.Taint, wished []clusterv1.MachineTaint) []corev1.Taint {
	value, initialized := node.Annotations[clusterv1.TaintsFromMachineAnnotation]
	owned, kept := map[string]string{}, map[string]bool{}
	for _, taint := range wished {
		id := taintID(taint.Key, taint.Effect)
		kept[id] = true
		if taint.Propagation == clusterv1.MachineTaintPropagationOnInitialization && initialized {
			continue
		}
		taints = with(taints, corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect})
		if taint.Propagation != clusterv1.MachineTaintPropagationOnInitialization {
			owned[id] = ""
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
