package machine

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/test/fuzzinput"
)

// recording is a Machine as far as its record of a Node goes.
type recording struct {
	record           NodeRecord
	recorded, linked bool
}

// desired is what is asked of the Node, with the record.
func (m *recording) desired(node *corev1.Node, desired DesiredNode) DesiredNode {
	synced := !slices.Contains(idsOf(node.Spec.Taints), taintID(clusterv1.NodeUninitializedTaint.Key, clusterv1.NodeUninitializedTaint.Effect))
	desired.Record = m.record.believed(node, desired, nodeKnown{recorded: m.recorded, linked: m.linked, synced: synced})
	desired.Initialized = desired.Record.initialized(node.UID)
	return desired
}

// sync synchronizes the Node, as a reconcile after the other does.
func (m *recording) sync(node *corev1.Node, desired DesiredNode) Synced {
	m.begin(node, desired)
	desired = m.desired(node, desired)
	result := SyncNode(node, desired)
	m.record, m.linked = result.Record.kept(node.UID, desired), true
	return result
}

// begin writes the record that the change of the Node needs, and no more: so far comes a process that dies then.
func (m *recording) begin(node *corev1.Node, desired DesiredNode) {
	desired = m.desired(node, desired)
	needed := desired.Record.or(SyncNode(node.DeepCopy(), desired).Record)
	if !m.recorded || !m.record.covers(needed) {
		m.record, m.recorded = needed, true
	}
}

// FuzzForgedClaims: whatever a kubelet writes into the annotations of its Node, and wherever the core dies, what
// administrators have set there stays, what the Machine asks for comes, and the taints of its initialization come to each Node.
// As soon as the kubelet is honest, what was the Machine's goes, too, if its record was not lost to the lie.
func FuzzForgedClaims(f *testing.F) {
	for _, seed := range [][]byte{nil, {1, 1, 1, 1, 1, 1},
		{3, 1, 2, 1, 0, 1, 2, 3, 1, 1, 1, 2, 2, 1, 1, 3, 0, 1, 2, 1, 1, 3, 3, 2, 1, 1, 0, 0, 1, 1}} {
		f.Add(seed)
	}
	f.Fuzz(forgedClaims)
}

// TestForgedClaims takes the same through many lives, the same ones each time.
func TestForgedClaims(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 5000 {
		data := make([]byte, 60)
		for i := range data {
			data[i] = byte(random.Uint32())
		}
		if forgedClaims(t, data); t.Failed() {
			t.Fatalf("with %v", data)
		}
	}
}

func forgedClaims(t *testing.T, data []byte) {
	t.Helper()
	c := fuzzinput.From(data)
	machine, node := &recording{}, anAdministeredNode("first")
	first := someDesired(c)
	machine.record, machine.recorded = NodeRecord{Taints: first.always()}, true
	if first.once() {
		machine.record.Initialized = new(types.UID(""))
	}
	// Taints that come to a Machine which had none have missed their turn on the Node that it has.
	desired, awaited := first, true
	check := func() {
		t.Helper()
		due := desired.once() && awaited
		machine.sync(node, desired)
		checkRecord(t, machine, node, desired, due)
		awaited = false
	}
	for i := range 1 + c.Below(8) {
		switch c.Below(4) {
		case 0:
			forge(c, node)
		case 1:
			desired = someDesired(c)
			machine.begin(node, desired)
		case 2:
			desired = someDesired(c)
			check()
		case 3:
			node = anAdministeredNode(types.UID(fmt.Sprintf("%d", i)))
			awaited = machine.record.Initialized != nil || !machine.linked
			forge(c, node)
		}
		checkAdministered(t, node)
	}
	check()
	checkAdministered(t, node)
}

// Keys that administrators alone use, and those of the Machine.
const (
	administeredLabel, administeredTaint  = "node-restriction.kubernetes.io/trusted", "example.com/quarantine"
	desiredLabel, desiredTaint, onceTaint = "node.cluster.x-k8s.io/pool", "example.com/pool", "example.com/starting"
)

func anAdministeredNode(uid types.UID) *corev1.Node {
	node := &corev1.Node{}
	node.Name, node.UID = "n", uid
	node.Labels = map[string]string{administeredLabel: "yes"}
	node.Spec.Taints = []corev1.Taint{{Key: administeredTaint, Effect: corev1.TaintEffectNoSchedule}}
	return node
}

// forge writes what a kubelet may write.
func forge(c *fuzzinput.Choices, node *corev1.Node) {
	for _, claim := range []struct {
		annotation string
		values     []string
	}{
		{clusterv1.LabelsFromMachineAnnotation, []string{"", administeredLabel, administeredLabel + "," + desiredLabel, desiredLabel}},
		{clusterv1.TaintsFromMachineAnnotation, []string{"", administeredTaint + ":NoSchedule", desiredTaint + ":NoSchedule,,x", onceTaint + ":NoSchedule"}},
	} {
		if node.Annotations == nil {
			node.Annotations = map[string]string{}
		}
		delete(node.Annotations, claim.annotation)
		if c.Yes() {
			node.Annotations[claim.annotation] = fuzzinput.Of(c, claim.values...)
		}
	}
}

func someDesired(c *fuzzinput.Choices) DesiredNode {
	desired := DesiredNode{PropagateTaints: true, Labels: map[string]string{}}
	if c.Yes() {
		desired.Labels[desiredLabel] = "a"
	}
	for key, propagation := range map[string]clusterv1.MachineTaintPropagation{
		desiredTaint: clusterv1.MachineTaintPropagationAlways, onceTaint: clusterv1.MachineTaintPropagationOnInitialization,
	} {
		desired.Taints = append(desired.Taints, clusterv1.MachineTaint{Key: key, Effect: corev1.TaintEffectNoSchedule, Propagation: propagation})
	}
	slices.SortFunc(desired.Taints, func(a, b clusterv1.MachineTaint) int { return strings.Compare(a.Key, b.Key) })
	desired.Taints = slices.DeleteFunc(desired.Taints, func(clusterv1.MachineTaint) bool { return c.Yes() })
	return desired
}

func checkAdministered(t *testing.T, node *corev1.Node) {
	t.Helper()
	if node.Labels[administeredLabel] != "yes" || !slices.Contains(idsOf(node.Spec.Taints), administeredTaint+":NoSchedule") {
		t.Errorf("An administrator's label or taint is gone: %v %v", node.Labels, node.Spec.Taints)
	}
}

// checkRecord checks a Node that has just been synchronized.
func checkRecord(t *testing.T, machine *recording, node *corev1.Node, desired DesiredNode, due bool) {
	t.Helper()
	ids := idsOf(node.Spec.Taints)
	contains(t, "desired label", node.Labels, desired.Labels)
	for _, id := range desired.always() {
		if !slices.Contains(ids, id) {
			t.Errorf("Taint %s is desired and not there: %v", id, ids)
		}
	}
	if due && !slices.Contains(ids, onceTaint+":NoSchedule") {
		t.Errorf("The taints of the initialization have not come to Node %s: %v", node.UID, ids)
	}
	if len(outside(machine.record.Labels, tracked(track(desired.Labels)))) > 0 || len(outside(machine.record.Taints, desired.always())) > 0 {
		t.Errorf("The record %v is not what is desired: %v, %v", machine.record, desired.Labels, desired.always())
	}
	again := desired
	again.Record, again.Initialized = machine.record, true
	if SyncNode(node.DeepCopy(), again).Changed {
		t.Error("The second time changes something")
	}
}
