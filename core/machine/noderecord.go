package machine

import (
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Annotations in which a Machine records what the core has set on its Node. The Node has annotations for that, too, but a
// kubelet may write those of its own Node.
const (
	// LabelsOnNodeAnnotation lists the keys of the labels. It is empty, and there, when there are none.
	LabelsOnNodeAnnotation = "machine.millwright.dev/labels-on-node"
	// TaintsOnNodeAnnotation lists the taints of spec.taints that are synchronized, as key:effect.
	TaintsOnNodeAnnotation = "machine.millwright.dev/taints-on-node"
	// TaintsInitializedAnnotation has the UID of the Node whose OnInitialization taints have had their turn. It is empty
	// when they are still to come, and not there when the Machine has had none.
	TaintsInitializedAnnotation = "machine.millwright.dev/taints-initialized"
)

// recordAnnotations are those of the record.
var recordAnnotations = []string{LabelsOnNodeAnnotation, TaintsOnNodeAnnotation, TaintsInitializedAnnotation}

// IsRecord reports whether an annotation of a Machine is a record of the core, which nothing else writes.
func IsRecord(key string) bool {
	return slices.Contains(recordAnnotations, key)
}

// NodeRecord is what a Machine records of its Node.
type NodeRecord struct {
	// Labels are keys of labels and Taints IDs of taints that the core has set on the Node, or is about to; sorted. Only these
	// are removed again, and only if the Node has them in its annotations, too.
	Labels, Taints []string
	// Initialized is the UID of the Node whose OnInitialization taints have had their turn; "" while they are to come, nil
	// when the Machine has had none.
	Initialized *types.UID
}

// recordOf reads the record of a Machine. There is none on one that another core, or an older one, has reconciled.
func recordOf(m *clusterv1.Machine) (record NodeRecord, recorded bool) {
	labels, recorded := m.Annotations[LabelsOnNodeAnnotation]
	record = NodeRecord{Labels: tracked(labels), Taints: tracked(m.Annotations[TaintsOnNodeAnnotation])}
	if uid, ok := m.Annotations[TaintsInitializedAnnotation]; ok {
		record.Initialized = (*types.UID)(&uid)
	}
	return record, recorded
}

// writeTo writes the record to the annotations of a Machine.
func (r NodeRecord) writeTo(m *clusterv1.Machine) {
	annotations := maps.Clone(m.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[LabelsOnNodeAnnotation] = strings.Join(r.Labels, ",")
	delete(annotations, TaintsOnNodeAnnotation)
	if len(r.Taints) > 0 {
		annotations[TaintsOnNodeAnnotation] = strings.Join(r.Taints, ",")
	}
	delete(annotations, TaintsInitializedAnnotation)
	if r.Initialized != nil {
		annotations[TaintsInitializedAnnotation] = string(*r.Initialized)
	}
	m.Annotations = annotations
}

// covers reports whether the record has all that the other one has. Which Node was initialized is not compared: that follows
// the change of the Node.
func (r NodeRecord) covers(other NodeRecord) bool {
	return len(outside(other.Labels, r.Labels)) == 0 && len(outside(other.Taints, r.Taints)) == 0 &&
		(other.Initialized == nil || r.Initialized != nil)
}

// or is the record with what the other one has beside it.
func (r NodeRecord) or(other NodeRecord) NodeRecord {
	r.Labels, r.Taints = joined(r.Labels, other.Labels), joined(r.Taints, other.Taints)
	if r.Initialized == nil {
		r.Initialized = other.Initialized
	}
	return r
}

// initialized reports whether the OnInitialization taints of a Node have had their turn.
func (r NodeRecord) initialized(node types.UID) bool {
	return r.Initialized != nil && *r.Initialized == node && node != ""
}

// nodeKnown is what is known of a Node beside the record of its Machine.
type nodeKnown struct {
	// recorded means that the Machine has a record, linked that it was linked with the Node before.
	recorded, linked bool
	// synced means that the Node was synchronized once, by its annotations.
	synced bool
}

// believed is the record that the Node is compared with:
//   - Until the Machine is linked with the Node, all that is desired is to be the Machine's, so what the Node was registered
//     with is as well. The annotations of the Node do not count.
//   - On one that is linked and has no record, the Node is believed, once: it was another core that has linked them, or an
//     older one, which kept no record.
//   - OnInitialization taints that come to a Machine later have missed their turn on the Node that it has.
func (r NodeRecord) believed(node *corev1.Node, desired DesiredNode, known nodeKnown) NodeRecord {
	claimed, marked := node.Annotations[clusterv1.TaintsFromMachineAnnotation]
	switch {
	case !known.linked:
		r = r.or(NodeRecord{Labels: slices.Collect(maps.Keys(desired.Labels)), Taints: desired.always()})
	case !known.recorded:
		labels, taints := tracked(node.Annotations[clusterv1.LabelsFromMachineAnnotation]), desired.always()
		if marked {
			taints = tracked(claimed)
		}
		// What is not there needs no record, whatever the annotations of the Node name.
		r = r.or(NodeRecord{Labels: both(labels, slices.Collect(maps.Keys(node.Labels))), Taints: both(taints, idsOf(node.Spec.Taints))})
	}
	if r.Initialized == nil && desired.once() {
		uid := types.UID("")
		if known.linked && known.synced && marked {
			uid = node.UID
		}
		r.Initialized = &uid
	}
	return r
}

// kept is the record when the Node is synchronized, has what the result names, and nothing else of the Machine's.
func (r NodeRecord) kept(node types.UID, desired DesiredNode) NodeRecord {
	if r.Initialized != nil && desired.PropagateTaints {
		r.Initialized = &node
	}
	return r
}

// always are the IDs of the taints that are desired and synchronized.
func (w DesiredNode) always() []string {
	var ids []string
	for _, taint := range w.Taints {
		if w.PropagateTaints && taint.Propagation != clusterv1.MachineTaintPropagationOnInitialization {
			ids = append(ids, taintID(taint.Key, taint.Effect))
		}
	}
	return ids
}

// idsOf are the IDs of the taints of a Node.
func idsOf(taints []corev1.Taint) []string {
	ids := make([]string, 0, len(taints))
	for _, taint := range taints {
		ids = append(ids, taintID(taint.Key, taint.Effect))
	}
	return ids
}

// once reports whether taints are desired that are set once.
func (w DesiredNode) once() bool {
	return w.PropagateTaints && slices.ContainsFunc(w.Taints, func(taint clusterv1.MachineTaint) bool {
		return taint.Propagation == clusterv1.MachineTaintPropagationOnInitialization
	})
}

// both are the entries of the first list that the second one has, too; outside those that it has not.
func both(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(entry string) bool { return !slices.Contains(other, entry) })
}

func outside(list, other []string) []string {
	return slices.DeleteFunc(slices.Clone(list), func(entry string) bool { return slices.Contains(other, entry) })
}

// joined is a sorted list with the entries of both, each once.
func joined(list, other []string) []string {
	all := slices.Concat(list, other)
	slices.Sort(all)
	return slices.Compact(all)
}
