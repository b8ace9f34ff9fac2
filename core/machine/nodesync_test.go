package machine

import (
	"regexp"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestSyncNode(t *testing.T) {
	g := NewWithT(t)
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"kubernetes.io/hostname": "n"}},
		Spec: corev1.NodeSpec{
			Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint, {Key: "mine", Effect: corev1.TaintEffectNoSchedule}},
		},
	}
	first := DesiredNode{
		Labels:      map[string]string{"node.cluster.x-k8s.io/a": "1", "node.cluster.x-k8s.io/b": "2"},
		Annotations: map[string]string{"node.cluster.x-k8s.io/note": "x"},
		Identity:    map[string]string{clusterv1.MachineAnnotation: "m"},
	}
	result := SyncNode(node, first)
	g.Expect(result.Changed).To(BeTrue())
	g.Expect(result.Taints).To(BeTrue())
	g.Expect(node.Labels).
		To(Equal(map[string]string{"kubernetes.io/hostname": "n", "node.cluster.x-k8s.io/a": "1", "node.cluster.x-k8s.io/b": "2"}))
	g.Expect(node.Annotations).To(HaveKeyWithValue(clusterv1.LabelsFromMachineAnnotation, "node.cluster.x-k8s.io/a,node.cluster.x-k8s.io/b"))
	g.Expect(node.Annotations).To(HaveKeyWithValue(clusterv1.AnnotationsFromMachineAnnotation, "node.cluster.x-k8s.io/note"))
	g.Expect(node.Annotations).To(HaveKeyWithValue(clusterv1.MachineAnnotation, "m"))
	g.Expect(node.Spec.Taints).To(ConsistOf(HaveField("Key", "mine")))

	g.Expect(SyncNode(node, first).Changed).To(BeFalse(), "nothing to write the second time")

	// Another owner's label of a managed domain stays; ours that is no longer desired goes; a changed value is set.
	node.Labels["node.cluster.x-k8s.io/foreign"] = "stays"
	node.Labels["node.cluster.x-k8s.io/a"] = "tampered"
	second := DesiredNode{Labels: map[string]string{"node.cluster.x-k8s.io/a": "1"}, Identity: first.Identity}
	g.Expect(SyncNode(node, second)).To(Equal(Synced{Changed: true}))
	g.Expect(node.Labels).To(Equal(map[string]string{
		"kubernetes.io/hostname": "n", "node.cluster.x-k8s.io/a": "1", "node.cluster.x-k8s.io/foreign": "stays",
	}))
	g.Expect(node.Annotations).NotTo(HaveKey("node.cluster.x-k8s.io/note"))
	g.Expect(node.Annotations).To(HaveKey(clusterv1.MachineAnnotation))
}

func TestWhatGoesToTheNode(t *testing.T) {
	labels := map[string]bool{
		"node-role.kubernetes.io/worker":               true,
		"sub.node-role.kubernetes.io/worker":           false,
		"node-restriction.kubernetes.io/x":             true,
		"example.com.node-restriction.kubernetes.io/x": true,
		"examplenode-restriction.kubernetes.io/x":      false,
		"node.cluster.x-k8s.io/x":                      true,
		"a.node.cluster.x-k8s.io/x":                    true,
		"cluster.x-k8s.io/cluster-name":                false,
		"plain":                                        false,
	}
	g := NewWithT(t)
	for key, want := range labels {
		g.Expect(labelForNode(key)).To(Equal(want), key)
	}
	g.Expect(annotationForNode("node.cluster.x-k8s.io/x")).To(BeTrue())
	g.Expect(annotationForNode("node-role.kubernetes.io/x")).To(BeFalse())

	chosen := selected(
		map[string]string{"team.example.com/a": "1", "plain": "2"},
		labelForNode,
		[]*regexp.Regexp{regexp.MustCompile(`^team\.`)},
	)
	g.Expect(chosen).To(Equal(map[string]string{"team.example.com/a": "1"}))
}

func TestDesired(t *testing.T) {
	g := NewWithT(t)
	set := metav1.OwnerReference{APIVersion: clusterv1.GroupVersion.String(), Kind: "MachineSet", Name: "s", Controller: new(true)}
	s := &scope{interruptible: true, Base: base{Object: &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", OwnerReferences: []metav1.OwnerReference{set}},
		Spec:       clusterv1.MachineSpec{ClusterName: "c"},
	}}}
	desired := s.desired()
	g.Expect(desired.Labels).To(HaveKey(clusterv1.InterruptibleLabel))
	g.Expect(desired.Identity).To(Equal(map[string]string{
		clusterv1.ClusterNameAnnotation: "c", clusterv1.ClusterNamespaceAnnotation: "ns", clusterv1.MachineAnnotation: "m",
		clusterv1.OwnerKindAnnotation: "MachineSet", clusterv1.OwnerNameAnnotation: "s",
	}))
}
