package machine

import (
	"errors"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/machines"
)

func TestSyncPreserved(t *testing.T) {
	other := corev1.Taint{Key: "other", Effect: corev1.TaintEffectNoSchedule}
	for _, c := range []struct {
		name      string
		preserved bool
		cordoned  bool
		taints    []corev1.Taint
		changed   bool
		want      []corev1.Taint
	}{
		{name: "another Machine's Node", taints: []corev1.Taint{other}, want: []corev1.Taint{other}},
		{name: "to be cordoned and tainted", preserved: true, taints: []corev1.Taint{other}, changed: true, want: []corev1.Taint{other, preservedTaint}},
		{name: "uncordoned by a user", preserved: true, taints: []corev1.Taint{preservedTaint}, changed: true, want: []corev1.Taint{preservedTaint}},
		{name: "cordoned by a user", preserved: true, cordoned: true, changed: true, want: []corev1.Taint{preservedTaint}},
		{name: "done", preserved: true, cordoned: true, taints: []corev1.Taint{preservedTaint}, want: []corev1.Taint{preservedTaint}},
		{name: "given back to its set", cordoned: true, taints: []corev1.Taint{preservedTaint}, want: []corev1.Taint{preservedTaint}},
	} {
		t.Run(c.name, func(t *testing.T) {
			g := NewWithT(t)
			node := &corev1.Node{Spec: corev1.NodeSpec{Unschedulable: c.cordoned, Taints: c.taints}}
			before := node.DeepCopy()
			g.Expect(syncPreserved(node, c.preserved)).To(Equal(c.changed))
			g.Expect(node.Spec.Taints).To(Equal(c.want))
			g.Expect(node.Spec.Unschedulable).To(Equal(c.preserved || c.cordoned))
			g.Expect(syncPreserved(node, c.preserved)).To(BeFalse(), "once is enough")
			if !c.changed {
				g.Expect(node).To(Equal(before))
			}
		})
	}
}

func TestPreservedCondition(t *testing.T) {
	now := time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)
	machine := func(until string) *clusterv1.Machine {
		return &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{
			Labels:      map[string]string{machines.PreservedLabel: "workers"},
			Annotations: map[string]string{machines.PreserveUntilAnnotation: until},
		}}
	}
	for _, c := range []struct {
		machine      *clusterv1.Machine
		err, refused error
		reason, text string
	}{
		{machine: machine("2026-11-27T12:00:00Z"), refused: errors.New("policy says no"), reason: PreservedReason,
			text: "\nIts Node n cannot be cordoned and tainted, and may take pods: policy says no"},
		{machine: machine("soon"), refused: errors.New("policy says no"), reason: PreservedForEverReason, text: "policy says no"},
		{machine: &clusterv1.Machine{}},
		{machine: machine("2026-11-27T12:00:00Z"), reason: PreservedReason, text: "until 2026-11-27T12:00:00Z, and is not counted as a replica of workers"},
		{machine: machine("soon"), reason: PreservedForEverReason, text: "is not a time like 2026-11-23T12:00:00Z"},
		{machine: machine("2026-11-22T12:00:00Z"), err: errors.New("policy says no"), reason: PreservationEndedReason, text: "policy says no"},
	} {
		g := NewWithT(t)
		s := &scope{preservedErr: c.err, node: &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n"}}, sync: nodeSync{err: c.refused}}
		s.Object, s.Now = c.machine, now
		got := s.preservedCondition()
		g.Expect(got.Reason).To(Equal(c.reason))
		g.Expect(got.Message).To(ContainSubstring(c.text))
		syncPreserved(s.node, true)
		g.Expect(s.preservedCondition().Message).NotTo(ContainSubstring("cannot be cordoned"), "it is")
	}
}

// TestPreserveByNode: the annotation of a Node counts only where the operator allows it, and never over that of the Machine.
func TestPreserveByNode(t *testing.T) {
	for _, c := range []struct {
		allowed             bool
		node, machine, want string
	}{
		{false, machines.PreserveNow, "", ""},
		{true, machines.PreserveNow, "", machines.PreserveNow},
		{true, machines.PreserveWhenFailed, "", machines.PreserveWhenFailed},
		{true, machines.PreserveNow, machines.PreserveNever, machines.PreserveNever},
		{true, machines.PreserveNever, "", ""},
		{true, "", "", ""},
	} {
		s := &scope{options: Options{PreserveByNode: c.allowed}, node: &corev1.Node{}}
		s.Object = &clusterv1.Machine{}
		if c.node != "" {
			s.node.Annotations = map[string]string{machines.PreserveAnnotation: c.node}
		}
		if c.machine != "" {
			s.Object.Annotations = map[string]string{machines.PreserveAnnotation: c.machine}
		}
		s.preserveByNode()
		NewWithT(t).Expect(s.Object.Annotations[machines.PreserveAnnotation]).To(Equal(c.want), "%+v", c)
	}
}
