package machine

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func taint(key, value string) corev1.Taint {
	return corev1.Taint{Key: key, Value: value, Effect: corev1.TaintEffectNoSchedule}
}

func TestSyncTaints(t *testing.T) {
	always := func(key, value string) clusterv1.MachineTaint {
		return clusterv1.MachineTaint{
			Key:         key,
			Value:       value,
			Effect:      corev1.TaintEffectNoSchedule,
			Propagation: clusterv1.MachineTaintPropagationAlways,
		}
	}
	once := func(key string) clusterv1.MachineTaint {
		return clusterv1.MachineTaint{
			Key:         key,
			Effect:      corev1.TaintEffectNoSchedule,
			Propagation: clusterv1.MachineTaintPropagationOnInitialization,
		}
	}
	const absent = "absent"
	tests := []struct {
		name    string
		have    []corev1.Taint
		tracked string
		wanted  []clusterv1.MachineTaint
		want    []corev1.Taint
		track   string
	}{
		{"first synchronization", []corev1.Taint{clusterv1.NodeUninitializedTaint, taint("foreign", "")}, absent,
			[]clusterv1.MachineTaint{always("a", "1"), once("o")},
			[]corev1.Taint{taint("foreign", ""), taint("a", "1"), taint("o", "")}, "a:NoSchedule"},
		{"nothing to do", []corev1.Taint{taint("a", "1")}, "a:NoSchedule", []clusterv1.MachineTaint{always("a", "1"), once("o")},
			[]corev1.Taint{taint("a", "1")}, "a:NoSchedule"},
		{"a value that was changed on the Node", []corev1.Taint{taint("a", "tampered")}, "a:NoSchedule", []clusterv1.MachineTaint{always("a", "1")},
			[]corev1.Taint{taint("a", "1")}, "a:NoSchedule"},
		{"taken from the Machine", []corev1.Taint{taint("foreign", ""), taint("a", "1")}, "a:NoSchedule", nil,
			[]corev1.Taint{taint("foreign", "")}, ""},
		{"no longer always", []corev1.Taint{taint("a", "")}, "a:NoSchedule", []clusterv1.MachineTaint{once("a")},
			[]corev1.Taint{taint("a", "")}, ""},
		{"another effect of the same key", []corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}}, "",
			[]clusterv1.MachineTaint{always("a", "1")},
			[]corev1.Taint{{Key: "a", Effect: corev1.TaintEffectNoExecute}, taint("a", "1")}, "a:NoSchedule"},
		{"a user's own, which the Machine asks for too", []corev1.Taint{taint("a", "1")}, "", []clusterv1.MachineTaint{always("a", "1")},
			[]corev1.Taint{taint("a", "1")}, "a:NoSchedule"},
		{"a user's own, when the Machine does not ask for it", []corev1.Taint{taint("a", "1")}, "", nil,
			[]corev1.Taint{taint("a", "1")}, ""},
		{"registered with it", []corev1.Taint{taint("a", "1")}, absent, []clusterv1.MachineTaint{always("a", "1")},
			[]corev1.Taint{taint("a", "1")}, "a:NoSchedule"},
		// Cluster API's core gives up on the Node permanently when a user has garbled the annotation.
		{"garbled annotation", []corev1.Taint{taint("foreign", "")}, "what:is:this,,b", []clusterv1.MachineTaint{always("a", "1")},
			[]corev1.Taint{taint("foreign", ""), taint("a", "1")}, "a:NoSchedule"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			node := &corev1.Node{Spec: corev1.NodeSpec{Taints: test.have}}
			if test.tracked != absent {
				node.Annotations = map[string]string{clusterv1.TaintsFromMachineAnnotation: test.tracked}
			}
			desired := DesiredNode{Taints: test.wanted, PropagateTaints: true}
			SyncNode(node, desired)
			g.Expect(node.Spec.Taints).To(Equal(test.want))
			g.Expect(node.Annotations).To(HaveKeyWithValue(clusterv1.TaintsFromMachineAnnotation, test.track))
			g.Expect(SyncNode(node, desired)).To(Equal(Synced{}), "nothing to write the second time")
		})
	}
}

func TestTaintsStayOutWithTheGateClosed(t *testing.T) {
	g := NewWithT(t)
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{taint("a", "")}}}
	SyncNode(node, DesiredNode{Taints: []clusterv1.MachineTaint{{Key: "b", Effect: corev1.TaintEffectNoSchedule}}})
	g.Expect(node.Spec.Taints).To(ConsistOf(taint("a", "")))
	g.Expect(node.Annotations).NotTo(HaveKey(clusterv1.TaintsFromMachineAnnotation))
}

func TestOutdatedRevision(t *testing.T) {
	revision := func(text string) metav1.ObjectMeta {
		if text == "" {
			return metav1.ObjectMeta{}
		}
		return metav1.ObjectMeta{Annotations: map[string]string{clusterv1.RevisionAnnotation: text}}
	}
	tests := []struct {
		name, set, deployment string
		want                  bool
	}{
		{"earlier", "1", "2", true},
		{"present", "2", "2", false},
		{"ten is more than nine", "9", "10", true},
		{"the deployment does not know its new set yet", "3", "2", false},
		{"a set without revision", "", "2", true},
		{"no revisions at all", "", "", false},
		{"no revision of the deployment", "1", "", false},
		// Cluster API's core leaves the Node out of step permanently when a user has garbled an annotation.
		{"garbled", "one", "2", false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			s := &scope{
				machineSet:        &clusterv1.MachineSet{ObjectMeta: revision(test.set)},
				machineDeployment: &clusterv1.MachineDeployment{ObjectMeta: revision(test.deployment)},
			}
			NewWithT(t).Expect(s.outdatedRevision()).To(Equal(test.want))
		})
	}
	NewWithT(t).Expect((&scope{}).outdatedRevision()).To(BeFalse(), "a Machine by itself has no revision")
}

// TestOutdatedNode: taint and annotation come together, go together, and never touch what a user has set.
func TestOutdatedNode(t *testing.T) {
	g := NewWithT(t)
	node := &corev1.Node{Spec: corev1.NodeSpec{Taints: []corev1.Taint{taint("foreign", "")}}}
	outdated, present := DesiredNode{Outdated: true, KeepFromScaleDown: true}, DesiredNode{KeepFromScaleDown: true}
	g.Expect(SyncNode(node, outdated)).To(Equal(Synced{Changed: true, Taints: true}))
	g.Expect(node.Spec.Taints).To(ConsistOf(taint("foreign", ""), clusterv1.NodeOutdatedRevisionTaint))
	g.Expect(node.Annotations).To(HaveKeyWithValue(scaleDownDisabledAnnotation, "true"))
	g.Expect(SyncNode(node, outdated)).To(Equal(Synced{}), "nothing to write the second time")

	g.Expect(SyncNode(node, present)).To(Equal(Synced{Changed: true, Taints: true}))
	g.Expect(node.Spec.Taints).To(ConsistOf(taint("foreign", "")))
	g.Expect(node.Annotations).NotTo(HaveKey(scaleDownDisabledAnnotation))
	g.Expect(node.Annotations).NotTo(HaveKey(ScaleDownDisabledMarkerAnnotation))
	g.Expect(SyncNode(node, present)).To(Equal(Synced{}))
}

// TestOutdatedTaintOfAUser: who has cordoned a Node softly by that taint keeps it, before, during and after a rollout.
func TestOutdatedTaintOfAUser(t *testing.T) {
	ours := clusterv1.NodeOutdatedRevisionTaint
	theirs := ours
	theirs.Value = "mine"
	marked := map[string]string{OutdatedRevisionMarkerAnnotation: "true"}
	tests := []struct {
		name       string
		have       []corev1.Taint
		marks      map[string]string
		outdated   bool
		want       []corev1.Taint
		wantMarked bool
	}{
		{"a user's stays", []corev1.Taint{ours}, nil, false, []corev1.Taint{ours}, false},
		{"a user's stays while outdated", []corev1.Taint{ours}, nil, true, []corev1.Taint{ours}, false},
		{"a user has given ours a value", []corev1.Taint{theirs}, marked, true, []corev1.Taint{theirs}, false},
		{"and it stays afterwards", []corev1.Taint{theirs}, marked, false, []corev1.Taint{theirs}, false},
		{"ours comes", nil, nil, true, []corev1.Taint{ours}, true},
		{"ours comes again", nil, marked, true, []corev1.Taint{ours}, true},
		{"ours stays", []corev1.Taint{ours}, marked, true, []corev1.Taint{ours}, true},
		{"ours goes", []corev1.Taint{ours}, marked, false, []corev1.Taint{}, false},
		{"the mark alone goes", nil, marked, false, nil, false},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: maps.Clone(test.marks)}, Spec: corev1.NodeSpec{Taints: test.have}}
			desired := DesiredNode{Outdated: test.outdated}
			SyncNode(node, desired)
			g.Expect(node.Spec.Taints).To(HaveExactElements(slices.Clone(test.want)))
			_, isMarked := node.Annotations[OutdatedRevisionMarkerAnnotation]
			g.Expect(isMarked).To(Equal(test.wantMarked))
			g.Expect(SyncNode(node, desired)).To(Equal(Synced{}), "nothing to write the second time")
		})
	}
}

func TestScaleDownAnnotationOfAUser(t *testing.T) {
	const key, marker = scaleDownDisabledAnnotation, ScaleDownDisabledMarkerAnnotation
	tests := []struct {
		name              string
		have              map[string]string
		outdated, enabled bool
		want              map[string]string
	}{
		{"a user's stays while outdated", map[string]string{key: "true"}, true, true, map[string]string{key: "true"}},
		{"a user's stays afterwards", map[string]string{key: "true"}, false, true, map[string]string{key: "true"}},
		{"a user's no stays", map[string]string{key: "false"}, true, true, map[string]string{key: "false"}},
		{"a user has taken ours over", map[string]string{key: "false", marker: "true"}, true, true, map[string]string{key: "false"}},
		{"and it stays afterwards", map[string]string{key: "false", marker: "true"}, false, true, map[string]string{key: "false"}},
		{"ours is set", map[string]string{}, true, true, map[string]string{key: "true", marker: "true"}},
		{"ours is set again", map[string]string{marker: "true"}, true, true, map[string]string{key: "true", marker: "true"}},
		{"ours goes", map[string]string{key: "true", marker: "true"}, false, true, map[string]string{}},
		{"switched off", map[string]string{}, true, false, map[string]string{}},
		{"switched off later", map[string]string{key: "true", marker: "true"}, true, false, map[string]string{}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Annotations: test.have}}
			syncScaleDown(node, test.outdated, test.enabled)
			NewWithT(t).Expect(node.Annotations).To(Equal(test.want))
		})
	}
}
