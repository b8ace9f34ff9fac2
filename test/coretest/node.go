package coretest

import (
	"context"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/testenv"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

// Node creates a Node as a kubelet would register it: not initialized, and ready if the argument says so.
func (c *Core) Node(t *testing.T, name, providerID string, ready bool) *corev1.Node {
	t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec:       corev1.NodeSpec{ProviderID: providerID, Taints: []corev1.Taint{clusterv1.NodeUninitializedTaint}},
	}
	c.Create(t, node)
	if !strings.HasPrefix(name, testenv.NamespacePrefix) {
		// Those with the name of a namespace are deleted with it, after their Machines, which need not notice then.
		t.Cleanup(func() { _ = c.Client.Delete(context.WithoutCancel(t.Context()), node) })
	}
	c.NodeStatus(t, node, ready)
	return node
}

// NodeStatus writes the conditions that a kubelet writes.
func (c *Core) NodeStatus(t *testing.T, node *corev1.Node, ready bool) {
	t.Helper()
	status := map[bool]corev1.ConditionStatus{true: corev1.ConditionTrue, false: corev1.ConditionFalse}
	now := metav1.Now()
	node.Status.NodeInfo.KubeletVersion = "v1.36.3"
	node.Status.Conditions = []corev1.NodeCondition{
		{Type: corev1.NodeReady, Status: status[ready], Reason: "Kubelet", Message: "kubelet status", LastHeartbeatTime: now},
		{Type: corev1.NodeMemoryPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: now},
		{Type: corev1.NodeDiskPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: now},
		{Type: corev1.NodePIDPressure, Status: corev1.ConditionFalse, LastHeartbeatTime: now},
	}
	// A kubelet patches; the core may have written since the Node was read.
	empty := node.DeepCopy()
	empty.Status = corev1.NodeStatus{}
	if err := c.Client.Status().Patch(t.Context(), node, client.MergeFrom(empty)); err != nil {
		t.Fatal(err)
	}
}
