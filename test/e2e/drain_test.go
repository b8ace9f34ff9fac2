package e2e

import (
	"path"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// TestCoreKilledMidDrain kills the core while a disruption budget blocks a drain: the restarted core
// continues, and evicts when the budget allows it, not before.
func TestCoreKilledMidDrain(t *testing.T) {
	w := sharedWorld(t, "killed-mid-drain")
	w.Expect(w.sandbox.ApplySamples(w.ctx, w.namespace, replicas(2))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())
	w.Expect(w.scenario.DeployWorkload(w.ctx, 6, 6)).To(Succeed())

	machine := w.machineWithPods()
	instance := machine.Spec.ProviderID
	w.Expect(w.control.Delete(w.ctx, machine)).To(Succeed())
	w.awaitCondition(machine, machine.GetConditions, clusterv1.MachineDeletingCondition, func(c *metav1.Condition) error {
		return describes(c, clusterv1.MachineDeletingDrainingNodeReason)
	})
	w.expectCordoned(machine.Status.NodeRef.Name)
	pods := w.podsOn(machine.Status.NodeRef.Name)
	w.Expect(pods).NotTo(BeEmpty())
	w.sandbox.Core.Kill()
	w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())

	w.Expect(w.podsOn(machine.Status.NodeRef.Name)).To(Equal(pods), "the budget holds")
	w.Expect(w.live()).To(HaveKey(path.Base(instance)))
	w.setMinAvailable(4)
	w.Eventually(w.scenario.Watch.UIDs).ShouldNot(HaveKey(string(machine.UID)))
	w.Expect(w.scenario.AwaitRunning(w.ctx, 2)).To(Succeed())
	w.Expect(w.scenario.AwaitWorkload(w.ctx, 6)).To(Succeed())
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
	w.Expect(w.live()).To(HaveLen(2))
	w.Expect(w.live()).NotTo(HaveKey(path.Base(instance)))
}

// machineWithPods is a Machine whose Node has pods of the workload.
func (w *world) machineWithPods() *clusterv1.Machine {
	w.t.Helper()
	machines := w.machines()
	for i := range machines {
		if len(w.podsOn(machines[i].Status.NodeRef.Name)) > 0 {
			return &machines[i]
		}
	}
	w.t.Fatal("no Node has pods")
	return nil
}

// podsOn are the names of the workload's pods on a Node that are not being deleted.
func (w *world) podsOn(node string) []string {
	w.t.Helper()
	pods := &corev1.PodList{}
	w.Expect(w.target.List(w.ctx, pods, client.InNamespace(w.namespace))).To(Succeed())
	var names []string
	for _, pod := range pods.Items {
		if pod.Spec.NodeName == node && pod.DeletionTimestamp.IsZero() {
			names = append(names, pod.Name)
		}
	}
	return names
}

func (w *world) expectCordoned(node string) {
	w.t.Helper()
	object := &corev1.Node{}
	w.Expect(w.target.Get(w.ctx, client.ObjectKey{Name: node}, object)).To(Succeed())
	w.Expect(object.Spec.Unschedulable).To(BeTrue())
}

func (w *world) setMinAvailable(count int) {
	w.t.Helper()
	budget := &policyv1.PodDisruptionBudget{}
	w.Expect(w.target.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: "workload"}, budget)).To(Succeed())
	before := budget.DeepCopy()
	minimum := intstr.FromInt(count)
	budget.Spec.MinAvailable = &minimum
	w.Expect(w.target.Patch(w.ctx, budget, client.MergeFrom(before))).To(Succeed())
}
