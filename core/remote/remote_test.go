package remote

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
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
			Conditions: []corev1.NodeCondition{{Type: corev1.NodeReady, Status: corev1.ConditionTrue, LastHeartbeatTime: metav1.Now(), Message: "m"}},
			Images:     []corev1.ContainerImage{{Names: []string{"i"}}},
			NodeInfo:   corev1.NodeSystemInfo{KubeletVersion: "v1.36.3"},
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

func TestChanged(t *testing.T) {
	tests := []struct {
		name   string
		change func(*corev1.Node)
		want   bool
	}{
		{"heartbeat", func(n *corev1.Node) {
			n.Status.Conditions[0].LastHeartbeatTime = metav1.NewTime(time.Now().Add(time.Minute))
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

func TestParseRefusesWhatReachesBeyondItself(t *testing.T) {
	config := func(cluster, user string) string {
		return `{"apiVersion":"v1","kind":"Config","current-context":"x","contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}],
			"clusters":[{"name":"x","cluster":{"server":"https://h"` + cluster + `}}],"users":[{"name":"x","user":{` + user + `}}]}`
	}
	tests := []struct{ name, content, problem string }{
		{"token", config("", `"token":"t"`), ""},
		{"certificates inside", config("", `"client-certificate-data":"YQ==","client-key-data":"YQ=="`), ""},
		{"exec plugin", config("", `"exec":{"apiVersion":"client.authentication.k8s.io/v1","command":"c","interactiveMode":"Never"}`), "an exec plugin"},
		{"auth provider", config("", `"auth-provider":{"name":"oidc"}`), "an auth provider"},
		{"token file", config("", `"tokenFile":"/var/run/secrets/kubernetes.io/serviceaccount/token"`), "a token file"},
		{"certificate file", config("", `"client-certificate":"/etc/c"`), "certificate files"},
		{"authority file", config(`,"certificate-authority":"/etc/ca"`, `"token":"t"`), "a file for its certificate authority"},
		{"no kubeconfig", `{"secret":`, "not a kubeconfig"},
		{"no context", `{"apiVersion":"v1","kind":"Config"}`, "no usable current context"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			_, err := parse([]byte(test.content))
			if test.problem == "" {
				g.Expect(err).NotTo(HaveOccurred())
				return
			}
			g.Expect(err).To(MatchError(ContainSubstring(test.problem)))
		})
	}
}

func TestClusterOf(t *testing.T) {
	g := NewWithT(t)
	cluster, ok := clusterOf("a-kubeconfig")
	g.Expect(ok).To(BeTrue())
	g.Expect(cluster).To(Equal("a"))
	_, ok = clusterOf("-kubeconfig")
	g.Expect(ok).To(BeFalse())
	_, ok = clusterOf("a-ca")
	g.Expect(ok).To(BeFalse())
}
