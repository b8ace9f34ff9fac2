package e2e

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/sandbox"
)

// TestHealthCheck: one of three Nodes does not report any more, so that its control plane sets Ready to Unknown. The core is killed
// before the timeout of the MachineHealthCheck; the restarted one does not count from zero, and only this Machine is replaced.
func TestHealthCheck(t *testing.T) {
	w := manyWorld(t, &failing, "health-check")
	w.start(3)
	machines := w.machines()
	check := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.namespace, Name: "workers"},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: machines[0].Spec.ClusterName,
			Selector:    metav1.LabelSelector{MatchLabels: map[string]string{clusterv1.MachineDeploymentNameLabel: sandbox.SampleDeployment}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: corev1.ConditionUnknown, TimeoutSeconds: ptr.To[int32](15)}}},
		},
	}
	w.Expect(w.control.Create(w.ctx, check)).To(Succeed())
	w.awaitHealthy(check, 3)

	dead := machines[0]
	w.fallSilent(dead.Status.NodeRef.Name)
	w.sandbox.Core.Kill()
	w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())

	w.Eventually(w.scenario.Watch.UIDs).ShouldNot(HaveKey(string(dead.UID)))
	w.Expect(w.scenario.AwaitRunning(w.ctx, 3)).To(Succeed())
	for _, other := range machines[1:] {
		w.Expect(w.scenario.Watch.UIDs()).To(HaveKey(string(other.UID)))
	}
	w.awaitHealthy(check, 3)
	w.expectInstances(3)
}

// awaitHealthy waits until a MachineHealthCheck has found that many Machines healthy, all it has.
func (w *world) awaitHealthy(check *clusterv1.MachineHealthCheck, count int32) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		g.Expect(w.control.Get(w.ctx, client.ObjectKeyFromObject(check), check)).To(Succeed())
		g.Expect(check.Status.ExpectedMachines).To(HaveValue(Equal(count)))
		g.Expect(check.Status.CurrentHealthy).To(HaveValue(Equal(count)))
		g.Expect(meta.IsStatusConditionTrue(check.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)).To(BeTrue())
	}).Should(Succeed())
}

// fallSilent sets the condition that the node lifecycle controller sets when a kubelet does not report any more.
func (w *world) fallSilent(name string) {
	w.t.Helper()
	w.setReady(name, corev1.ConditionUnknown, "NodeStatusUnknown")
}

// setReady writes a Node's condition Ready.
func (w *world) setReady(name string, status corev1.ConditionStatus, reason string) {
	w.t.Helper()
	node := w.nodes()[name]
	w.Expect(node).NotTo(BeNil())
	before := node.DeepCopy()
	for i := range node.Status.Conditions {
		if c := &node.Status.Conditions[i]; c.Type == corev1.NodeReady {
			c.Status, c.Reason, c.LastTransitionTime = status, reason, metav1.Now()
		}
	}
	w.Expect(w.target.Status().Patch(w.ctx, node, client.MergeFrom(before))).To(Succeed())
}
