package main

import (
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest"
)

// TestAMachineThatIsWellByItsTurn: three Machines are unhealthy, and one is replaced at a time. While the others wait, the core is
// restarted, the watch of Nodes brings nothing any more, and the Node of one is Ready again. When there is room for all, only the other is
// replaced: each Node is read before.
func TestAMachineThatIsWellByItsTurn(t *testing.T) {
	g, ctx := NewWithT(t), t.Context()
	env, c := startServer(t)
	target, err := coretest.NewHangingTarget(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(target.End)
	start := func() func() {
		return runCore(t, c, kubeconfigOf(t, &coretest.Requests{}, env, "core"), "--webhook-port=0",
			"--machine-safety-recovery-grace=0s", "--machine-health-timeout=5s", "--remediation-max-in-flight=1",
			"--remediation-max-in-flight-per-cluster=100%")
	}
	stop := start()
	deployment := createDeployment(t, c, target.Kubeconfig())
	patch := func(object client.Object, body string) {
		t.Helper()
		g.Expect(c.Patch(ctx, object, client.RawPatch(types.MergePatchType, []byte(body)))).To(Succeed())
	}
	patch(deployment, `{"spec":{"replicas":3}}`)
	machines := awaitJudged(t, c, 3)
	for i := range machines {
		patch(&machines[i], `{"metadata":{"annotations":{"pre-terminate.delete.hook.machine.cluster.x-k8s.io/test":""}}}`)
		setReady(t, c, machines[i].Status.NodeRef.Name, corev1.ConditionFalse, "ill")
	}
	waiting := func(g Gomega) (waiting []clusterv1.Machine) {
		list := &clusterv1.MachineList{}
		g.Expect(c.List(ctx, list)).To(Succeed())
		for _, machine := range list.Items {
			asked := meta.FindStatusCondition(machine.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
			if machine.DeletionTimestamp.IsZero() && asked != nil && asked.Reason == clusterv1.MachineSetMachineRemediationDeferredReason {
				waiting = append(waiting, machine)
			}
		}
		return waiting
	}
	g.Eventually(func(g Gomega) { g.Expect(waiting(g)).To(HaveLen(2)) }).WithTimeout(timeout).Should(Succeed())
	stop()
	t.Cleanup(start())
	well, ill := waiting(g)[0], waiting(g)[1]
	setReady(t, c, well.Status.NodeRef.Name, corev1.ConditionFalse, "still ill")
	setReady(t, c, ill.Status.NodeRef.Name, corev1.ConditionFalse, "still ill")
	conditionsOf := func(machine clusterv1.Machine) []metav1.Condition {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(&machine), &machine)).To(Succeed())
		return machine.Status.Conditions
	}
	g.Eventually(conditionsOf).WithArguments(well).WithTimeout(timeout).
		Should(ContainElement(HaveField("Message", ContainSubstring("still ill"))), "the core has read the Nodes")

	reads := &atomic.Int64{}
	target.Hang(coretest.Hang{Holds: func(r *http.Request) bool {
		if r.Method == http.MethodGet && strings.HasSuffix(r.URL.Path, "/nodes/"+well.Status.NodeRef.Name) {
			reads.Add(1)
		}
		return false
	}})
	target.Mute()
	setReady(t, c, well.Status.NodeRef.Name, corev1.ConditionTrue, "well")
	patch(deployment, `{"spec":{"remediation":{"maxInFlight":3}}}`)
	deleted := func(machine clusterv1.Machine) bool {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(&machine), &machine)).To(Succeed())
		return !machine.DeletionTimestamp.IsZero()
	}
	g.Eventually(deleted).WithArguments(ill).WithTimeout(timeout).Should(BeTrue())
	g.Eventually(reads.Load).WithTimeout(timeout).Should(BeNumerically(">", 0))
	g.Eventually(conditionsOf).
		WithArguments(well).
		WithTimeout(timeout).
		ShouldNot(ContainElement(HaveField("Type", clusterv1.MachineOwnerRemediatedCondition)))
	g.Expect(deleted(well)).To(BeFalse())
}

// awaitJudged waits until there are as many Machines, and each is available and was found healthy.
func awaitJudged(t *testing.T, c client.Client, number int) []clusterv1.Machine {
	t.Helper()
	list := &clusterv1.MachineList{}
	NewWithT(t).Eventually(func(g Gomega) {
		g.Expect(c.List(t.Context(), list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(number))
		for _, machine := range list.Items {
			g.Expect(meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.AvailableCondition)).To(BeTrue())
			g.Expect(meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)).To(BeTrue())
		}
	}).WithTimeout(timeout).Should(Succeed())
	return list.Items
}
