package machine

import (
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/diff"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/test/fuzzinput"
)

// FuzzSyncNode: whatever a Node has and in whatever order changes come, the Node gets what is desired, keeps what is
// another writer's, and loses what was the Machine's; the second time there is nothing to do.
func FuzzSyncNode(f *testing.F) {
	for _, seed := range [][]byte{nil, {1, 1, 1, 1, 1, 1}, {1, 0, 1, 2, 1, 1, 1, 0, 1, 1, 2, 1, 1, 1, 3, 1, 1, 0, 1, 1, 1, 1, 1, 2, 1}} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		c := fuzzinput.From(data)
		node, foreign := aNode(c)
		once := map[string]bool{}
		for range 1 + c.Below(4) {
			desired := theDesired(c)
			syncOnce(t, node, foreign, desired)
			for _, taint := range desired.Taints {
				once[taintID(taint.Key, taint.Effect)] = once[taintID(taint.Key, taint.Effect)] ||
					taint.Propagation == clusterv1.MachineTaintPropagationOnInitialization
			}
		}
		syncOnce(t, node, foreign, DesiredNode{PropagateTaints: true})
		for _, key := range []string{clusterv1.LabelsFromMachineAnnotation, clusterv1.AnnotationsFromMachineAnnotation,
			clusterv1.TaintsFromMachineAnnotation} {
			if value := node.Annotations[key]; value != "" {
				t.Errorf("%s is %q though nothing is the Machine's any more", key, value)
			}
			delete(node.Annotations, key)
		}
		// Taints of the initialization are the Node's from then on.
		node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(taint corev1.Taint) bool { return once[taintID(taint.Key, taint.Effect)] })
		if !equality.Semantic.DeepEqual(foreign, node) {
			t.Errorf("Nothing is desired any more, yet the Node is not as it was:\n%s", diff.Diff(foreign, node))
		}
	})
}

var (
	// ourKeys are keys that only Machines use, foreignKeys those that only others use, bothKeys those that either may.
	ourKeys     = []string{"node.cluster.x-k8s.io/a", "node-role.kubernetes.io/worker"}
	foreignKeys = []string{"kubernetes.io/hostname", "node.cluster.x-k8s.io/foreign", "example.com/x"}
	bothKeys    = []string{
		"team.example.com/b", clusterv1.MachineAnnotation, clusterv1.LabelsFromMachineAnnotation, clusterv1.AnnotationsFromMachineAnnotation,
		clusterv1.TaintsFromMachineAnnotation, scaleDownDisabledAnnotation, ScaleDownDisabledMarkerAnnotation, OutdatedRevisionMarkerAnnotation,
	}
	values    = []string{"1", "2", "", "a,b", "x:NoSchedule"}
	ourTaints = []string{"example.com/ours", "a.b/c"}
	effects   = []corev1.TaintEffect{corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute}
)

// aNode creates a Node, and a copy with the parts that have another owner.
func aNode(c *fuzzinput.Choices) (node, foreign *corev1.Node) {
	node = &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name:        "n",
			UID:         "n",
			Labels:      fuzzinput.Some(c, foreignKeys, values),
			Annotations: fuzzinput.Some(c, foreignKeys, values),
		},
	}
	for _, effect := range effects {
		if c.Yes() {
			node.Spec.Taints = append(node.Spec.Taints, corev1.Taint{Key: "example.com/foreign", Value: fuzzinput.Of(c, values...), Effect: effect})
		}
	}
	outdated := clusterv1.NodeOutdatedRevisionTaint
	origin := fuzzinput.Of(c, "none", "core", "user", "user with a value")
	switch origin {
	case "user with a value":
		outdated.Value = "x"
		fallthrough
	case "user":
		// Without the core's marker the taint is a user's.
		node.Spec.Taints = append(node.Spec.Taints, outdated)
	}
	foreign = node.DeepCopy()
	if origin == "core" {
		node.Spec.Taints = append(node.Spec.Taints, outdated)
		metav1.SetMetaDataAnnotation(&node.ObjectMeta, OutdatedRevisionMarkerAnnotation, annotationTrue)
	}
	if c.Yes() {
		node.Spec.Taints = append(node.Spec.Taints, clusterv1.NodeUninitializedTaint)
	}
	return node, foreign
}

// theDesired is what a Machine could ask of its Node.
func theDesired(c *fuzzinput.Choices) DesiredNode {
	s := &scope{Base: base{Object: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
		Namespace:   "ns",
		Name:        fuzzinput.Of(c, "m", "o"),
		Labels:      fuzzinput.Some(c, slices.Concat(ourKeys, bothKeys), values),
		Annotations: fuzzinput.Some(c, slices.Concat(ourKeys, bothKeys), values),
	}}}}
	s.Object.Spec.ClusterName = "c"
	s.interruptible = c.Yes()
	s.options.PropagateTaints, s.options.KeepOutdatedFromScaleDown = c.Yes(), c.Yes()
	s.options.SyncLabels, s.options.SyncAnnotations = everything, everything
	for _, key := range ourTaints {
		for _, effect := range effects {
			if c.Yes() {
				s.Object.Spec.Taints = append(s.Object.Spec.Taints, clusterv1.MachineTaint{
					Key: key, Value: fuzzinput.Of(c, values...), Effect: effect,
					Propagation: fuzzinput.Of(c, clusterv1.MachineTaintPropagationAlways, clusterv1.MachineTaintPropagationOnInitialization),
				})
			}
		}
	}
	desired := s.desired()
	desired.Outdated = c.Yes()
	return desired
}

// syncOnce synchronizes the Node once and checks what must hold then.
func syncOnce(t *testing.T, node, foreign *corev1.Node, desired DesiredNode) {
	t.Helper()
	before := node.DeepCopy()
	result := SyncNode(node, desired)
	if changed := !equality.Semantic.DeepEqual(before, node); changed != result.Changed {
		t.Errorf("Changed is %v:\n%s", result.Changed, diff.Diff(before, node))
	}
	if changed := !equality.Semantic.DeepEqual(before.Spec.Taints, node.Spec.Taints); changed != result.Taints {
		t.Errorf("Taints is %v:\n%s", result.Taints, diff.Diff(before.Spec.Taints, node.Spec.Taints))
	}
	again := node.DeepCopy()
	if SyncNode(again, desired).Changed || !equality.Semantic.DeepEqual(again, node) {
		t.Errorf("The second time changes something:\n%s", diff.Diff(node, again))
	}
	contains(t, "desired label", node.Labels, desired.Labels)
	contains(t, "desired annotation", node.Annotations, desired.Annotations)
	contains(t, "identity", node.Annotations, desired.Identity)
	contains(t, "foreign label", node.Labels, except(foreign.Labels, desired.Labels))
	contains(t, "foreign annotation", node.Annotations, except(foreign.Annotations, desired.Annotations))
	checkTaints(t, node.Spec.Taints, foreign.Spec.Taints, desired)
}

func checkTaints(t *testing.T, have, foreign []corev1.Taint, desired DesiredNode) {
	t.Helper()
	for _, taint := range foreign {
		if !slices.Contains(have, taint) {
			t.Errorf("Foreign taint %v is gone from %v", taint, have)
		}
	}
	seen := map[string]bool{}
	for _, taint := range have {
		id := taintID(taint.Key, taint.Effect)
		if seen[id] {
			t.Errorf("Taint %s is there twice", id)
		}
		seen[id] = true
	}
	if seen[taintID(clusterv1.NodeUninitializedTaint.Key, clusterv1.NodeUninitializedTaint.Effect)] {
		t.Error("The Node is still uninitialized")
	}
	theirs := slices.ContainsFunc(foreign, func(taint corev1.Taint) bool { return taint.MatchTaint(&clusterv1.NodeOutdatedRevisionTaint) })
	if got := seen[taintID(clusterv1.NodeOutdatedRevisionTaint.Key, clusterv1.NodeOutdatedRevisionTaint.Effect)]; got != (desired.Outdated ||
		theirs) {
		t.Errorf("Outdated is %v, desired %v, a user's %v", got, desired.Outdated, theirs)
	}
	for _, taint := range desired.Taints {
		wanted := corev1.Taint{Key: taint.Key, Value: taint.Value, Effect: taint.Effect}
		if desired.PropagateTaints && taint.Propagation == clusterv1.MachineTaintPropagationAlways && !slices.Contains(have, wanted) {
			t.Errorf("Desired taint %v is not in %v", wanted, have)
		}
	}
}

func contains(t *testing.T, what string, have, wanted map[string]string) {
	t.Helper()
	for key, value := range wanted {
		if got, ok := have[key]; !ok || got != value {
			t.Errorf("%s %s=%s: have %q (%v)", what, key, value, got, ok)
		}
	}
}

// except are the entries of the first map whose key is not in the second.
func except(entries, leaveOut map[string]string) map[string]string {
	left := maps.Clone(entries)
	maps.DeleteFunc(left, func(key, _ string) bool { _, ok := leaveOut[key]; return ok })
	return left
}

// FuzzToPhase: the phase is one that the API has, it never goes back while observations are only added, and asking changes nothing.
func FuzzToPhase(f *testing.F) {
	f.Add([]byte{0, 0, 0, 0})
	f.Add([]byte{1, 1, 1, 1, 1, 1, 1, 1})
	f.Fuzz(func(t *testing.T, data []byte) {
		c := fuzzinput.From(data)
		m := &clusterv1.Machine{}
		order := []clusterv1.MachinePhase{
			clusterv1.MachinePhasePending, clusterv1.MachinePhaseProvisioning, clusterv1.MachinePhaseProvisioned,
			clusterv1.MachinePhaseRunning, clusterv1.MachinePhaseUpdating, clusterv1.MachinePhaseDeleting, clusterv1.MachinePhaseDeleted,
		}
		observations := []func(){
			func() { m.Status.Initialization.BootstrapDataSecretCreated = ptr.To(true) },
			func() { m.Spec.ProviderID = "id" },
			func() { m.Status.Initialization.InfrastructureProvisioned = ptr.To(true) },
			func() { m.Status.NodeRef.Name = "n" },
			func() {
				m.Status.Conditions = []metav1.Condition{{Type: clusterv1.MachineUpdatingCondition, Status: metav1.ConditionTrue}}
			},
			func() { m.DeletionTimestamp = ptr.To(metav1.NewTime(noon)) },
		}
		m.Finalizers = []string{clusterv1.MachineFinalizer}
		last := 0
		for range len(observations) {
			observations[c.Below(len(observations))]()
			before := m.DeepCopy()
			phase := ToPhase(m)
			if !equality.Semantic.DeepEqual(before, m) {
				t.Error("Asking for the phase changed the Machine")
			}
			now := slices.Index(order, phase)
			if now < last {
				t.Errorf("From %s back to %q", order[last], phase)
			}
			last = max(last, now)
			if strings.EqualFold(string(phase), "deleted") {
				t.Error("Deleted with the finalizer")
			}
		}
	})
}

// everything is what --additional-sync-machine-labels and its like choose at most.
var everything = []*regexp.Regexp{regexp.MustCompile(".*")}
