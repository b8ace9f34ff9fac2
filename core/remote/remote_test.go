package remote

import (
	"strings"
	"testing"
	"time"
	"unsafe"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func fullNode() *corev1.Node {
	return &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{
			Name: "n", UID: "u", ResourceVersion: "1", Labels: map[string]string{"a": "b"},
			ManagedFields: []metav1.ManagedFieldsEntry{{Manager: "kubelet"}},
		},
		Spec: corev1.NodeSpec{ProviderID: "p", PodCIDR: "10.0.0.0/24", Taints: []corev1.Taint{{Key: "k"}}},
		Status: corev1.NodeStatus{
			Conditions: []corev1.NodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), Message: "m"},
				{Type: "KernelDeadlock", Status: corev1.ConditionFalse, Reason: "NoDeadlock", LastTransitionTime: metav1.Unix(1, 0)},
			},
			Images:   []corev1.ContainerImage{{Names: []string{"i"}}},
			NodeInfo: corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"},
		},
	}
}

func TestTrim(t *testing.T) {
	g := NewWithT(t)
	kept, err := trimNode(fullNode())
	g.Expect(err).NotTo(HaveOccurred())
	node := kept.(*corev1.Node)
	g.Expect(node.Status.Images).To(BeEmpty())
	g.Expect(node.ManagedFields).To(BeEmpty())
	g.Expect(node.Spec.PodCIDR).To(BeEmpty())
	g.Expect(node.Status.Conditions[0].LastHeartbeatTime.IsZero()).To(BeTrue())
	g.Expect(node.Status.Conditions[0].Message).To(Equal("m"))
	g.Expect(node.Status.Conditions[1]).To(Equal(fullNode().Status.Conditions[1]), "health checks may be about any condition, and count from its transition")
	g.Expect(node.Spec.ProviderID).To(Equal("p"))
	g.Expect(node.Spec.Taints).To(HaveLen(1))
	g.Expect(node.Labels).To(HaveKey("a"))
	g.Expect(node.Status.NodeInfo.KubeletVersion).To(Equal("v1.36.3"))

	again, err := trimNode(node)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(node), "applied twice it changes nothing more")
	other, err := trimNode("not a Node")
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(other).To(Equal("not a Node"))
}

// TestTextsOfNodesAreKeptOnce: thousands of Nodes have most texts in common.
func TestTextsOfNodesAreKeptOnce(t *testing.T) {
	g := NewWithT(t)
	label := func() string {
		node := fullNode()
		node.Labels["a"] = strings.Clone("b")
		kept, err := trimNode(node)
		g.Expect(err).NotTo(HaveOccurred())
		return kept.(*corev1.Node).Labels["a"]
	}
	g.Expect(unsafe.StringData(label())).To(BeIdenticalTo(unsafe.StringData(label())))
}

func TestChanged(t *testing.T) {
	tests := []struct {
		name   string
		change func(*corev1.Node)
		want   bool
	}{
		{"heartbeat", func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Minute))
		}, false},
		{"allocatable memory", func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{corev1.ResourceMemory: resource.MustParse("1Gi")}
		}, true},
		{"allocatable devices", func(n *corev1.Node) {
			n.Status.Allocatable = corev1.ResourceList{"example.com/device": resource.MustParse("1")}
		}, false},
		{"images", func(n *corev1.Node) { n.Status.Images = nil }, false},
		{"condition", func(n *corev1.Node) { n.Status.Conditions[0].Status = corev1.ConditionFalse }, true},
		{"label", func(n *corev1.Node) { n.Labels["a"] = "c" }, true},
		{"taint", func(n *corev1.Node) { n.Spec.Taints = nil }, true},
		{"volume", func(n *corev1.Node) { n.Status.VolumesAttached = []corev1.AttachedVolume{{Name: "v"}} }, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			next := fullNode()
			next.ResourceVersion = "2"
			test.change(next)
			before, _ := trimNode(fullNode())
			after, _ := trimNode(next)
			g.Expect(changed(before.(*corev1.Node), after.(*corev1.Node))).To(Equal(test.want))
		})
	}
}
