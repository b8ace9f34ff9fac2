package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// TestBelievedRecord: what a Node says of itself counts once, for a Machine that another core has linked with it.
func TestBelievedRecord(t *testing.T) {
	uid := func(value string) *types.UID { return new(types.UID(value)) }
	always := clusterv1.MachineTaint{Key: "a", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationAlways}
	once := clusterv1.MachineTaint{
		Key:         "o",
		Effect:      corev1.TaintEffectNoSchedule,
		Propagation: clusterv1.MachineTaintPropagationOnInitialization,
	}
	desired := DesiredNode{Labels: map[string]string{"l": ""}, Taints: []clusterv1.MachineTaint{always, once}, PropagateTaints: true}
	plain := DesiredNode{Labels: desired.Labels, Taints: []clusterv1.MachineTaint{always}, PropagateTaints: true}
	claims := map[string]string{
		clusterv1.LabelsFromMachineAnnotation: "x,y",
		clusterv1.TaintsFromMachineAnnotation: "t:NoSchedule,gone:NoSchedule",
	}
	record := NodeRecord{Labels: []string{"r"}, Taints: []string{"r:NoSchedule"}, Initialized: uid("n")}
	for name, test := range map[string]struct {
		record  NodeRecord
		known   nodeKnown
		claims  map[string]string
		desired DesiredNode
		want    NodeRecord
	}{
		"before the link, all that is desired": {NodeRecord{}, nodeKnown{}, claims, desired,
			NodeRecord{Labels: []string{"l"}, Taints: []string{"a:NoSchedule"}, Initialized: uid("")}},
		"before the link, with a record": {record, nodeKnown{recorded: true, synced: true}, claims, desired,
			NodeRecord{Labels: []string{"l", "r"}, Taints: []string{"a:NoSchedule", "r:NoSchedule"}, Initialized: uid("n")}},
		"before the link, with the gate closed": {NodeRecord{}, nodeKnown{}, claims, DesiredNode{Taints: desired.Taints},
			NodeRecord{}},
		"linked, the record alone": {record, nodeKnown{recorded: true, linked: true, synced: true}, claims, desired, record},
		"of another core, what is there of the claims": {NodeRecord{}, nodeKnown{linked: true, synced: true}, claims, desired,
			NodeRecord{Labels: []string{"x"}, Taints: []string{"t:NoSchedule"}, Initialized: uid("n")}},
		"of another core, which has propagated no taints": {NodeRecord{}, nodeKnown{linked: true, synced: true}, nil, desired,
			NodeRecord{Taints: []string{"a:NoSchedule"}, Initialized: uid("")}},
		"of another core, without taints of the initialization": {NodeRecord{}, nodeKnown{linked: true, synced: true}, claims, plain,
			NodeRecord{Labels: []string{"x"}, Taints: []string{"t:NoSchedule"}}},
		"taints that come later have missed their turn": {NodeRecord{}, nodeKnown{recorded: true, linked: true, synced: true}, claims, desired,
			NodeRecord{Initialized: uid("n")}},
		"taints that come before the first synchronization": {NodeRecord{}, nodeKnown{recorded: true, linked: true}, claims, desired,
			NodeRecord{Initialized: uid("")}},
		"taints that come before the link, to a Node that claims to have had them": {NodeRecord{}, nodeKnown{recorded: true, synced: true}, claims, desired,
			NodeRecord{Labels: []string{"l"}, Taints: []string{"a:NoSchedule"}, Initialized: uid("")}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			node := &corev1.Node{
				ObjectMeta: metav1.ObjectMeta{UID: "n", Annotations: test.claims, Labels: map[string]string{"x": "", "l": ""}},
				Spec:       corev1.NodeSpec{Taints: []corev1.Taint{taint("t", ""), taint("a", "")}},
			}
			got := test.record.believed(node, test.desired, test.known)
			g.Expect(got.Labels).To(ConsistOf(test.want.Labels))
			g.Expect(got.Taints).To(ConsistOf(test.want.Taints))
			g.Expect(got.Initialized).To(Equal(test.want.Initialized))
		})
	}
}

// TestNodeRecord: what is written is read again, and no annotation is there without need but the one that says that there is a
// record.
func TestNodeRecord(t *testing.T) {
	g := NewWithT(t)
	m := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{"mine": "stays"}}}
	_, recorded := recordOf(m)
	g.Expect(recorded).To(BeFalse())
	full := NodeRecord{Labels: []string{"a", "b"}, Taints: []string{"t:NoSchedule"}, Initialized: new(types.UID("n"))}
	full.writeTo(m)
	got, recorded := recordOf(m)
	g.Expect(recorded).To(BeTrue())
	g.Expect(got).To(Equal(full))
	NodeRecord{}.writeTo(m)
	g.Expect(m.Annotations).To(Equal(map[string]string{"mine": "stays", LabelsOnNodeAnnotation: ""}))
	got, recorded = recordOf(m)
	g.Expect(recorded).To(BeTrue())
	g.Expect(got).To(Equal(NodeRecord{}))

	g.Expect(full.covers(NodeRecord{Labels: []string{"b"}, Initialized: new(types.UID(""))})).To(BeTrue())
	g.Expect(full.covers(NodeRecord{Labels: []string{"c"}})).To(BeFalse())
	g.Expect(full.covers(NodeRecord{Taints: []string{"t:NoExecute"}})).To(BeFalse())
	g.Expect(NodeRecord{}.covers(NodeRecord{Initialized: new(types.UID(""))})).To(BeFalse(), "that taints are to come is recorded first")
	g.Expect(full.initialized("n")).To(BeTrue())
	g.Expect(full.initialized("another")).To(BeFalse())
	g.Expect(NodeRecord{Initialized: new(types.UID(""))}.initialized("")).To(BeFalse())
	for _, key := range recordAnnotations {
		g.Expect(IsRecord(key)).To(BeTrue())
		g.Expect(ownAnnotations).To(ContainElement(key), "it never goes to a Node")
	}
	g.Expect(IsRecord(ForceDeletionAnnotation)).To(BeFalse())
}

// TestTurns: what a process knows of a Node is about that Node and that Machine.
func TestTurns(t *testing.T) {
	g := NewWithT(t)
	known, key := turns{}, types.NamespacedName{Namespace: "ns", Name: "m"}
	g.Expect(known.had(key, "m", "n")).To(BeFalse())
	known.add(key, "m", "n")
	g.Expect(known.had(key, "m", "n")).To(BeTrue())
	g.Expect(known.had(key, "m", "another")).To(BeFalse())
	g.Expect(known.had(key, "another", "n")).To(BeFalse())
	known.forget(key)
	g.Expect(known.had(key, "m", "n")).To(BeFalse())
}
