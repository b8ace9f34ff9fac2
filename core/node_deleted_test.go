package main

import (
	"fmt"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/core/safety/freeze"
	"millwright.dev/test/coretest"
)

// TestDeletingANode has its Machine replaced: at once by a MachineHealthCheck, and after its timeout by the default policy.
func TestDeletingANode(t *testing.T) {
	for name, checked := range map[string]bool{"MachineHealthCheck": true, "default policy": false} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			env, c := startServer(t)
			timeouts := "--machine-health-timeout=5s"
			if checked {
				timeouts = "--machine-health-timeout=0s"
			}
			t.Cleanup(runCore(t, c, kubeconfigOf(t, &coretest.Requests{}, env, "core"), "--webhook-port=0", timeouts))
			deployment := createDeployment(t, c, kubeconfigOf(t, &coretest.Requests{}, env, "target"))
			g.Expect(c.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":1}}`)))).To(Succeed())
			before := awaitMachine(t, c, "")
			if checked {
				g.Expect(c.Create(ctx, &clusterv1.MachineHealthCheck{
					ObjectMeta: metav1.ObjectMeta{Namespace: "default", Name: "workers"},
					Spec: clusterv1.MachineHealthCheckSpec{
						ClusterName: "c",
						Selector:    metav1.LabelSelector{MatchLabels: map[string]string{"pool": "d"}},
					},
				})).To(Succeed())
				g.Eventually(healthy(t, c, before.Name)).WithTimeout(timeout).Should(BeTrue())
			}
			g.Expect(c.Delete(ctx, &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: before.Status.NodeRef.Name}})).To(Succeed())
			after := awaitMachine(t, c, before.Name)
			g.Expect(after.Status.NodeRef.Name).NotTo(Equal(before.Status.NodeRef.Name))
		})
	}
}

// healthy reports whether a Machine has been judged and is healthy.
func healthy(t *testing.T, c client.Client, name string) func() bool {
	return func() bool {
		m := &clusterv1.Machine{}
		NewWithT(t).Expect(c.Get(t.Context(), client.ObjectKey{Namespace: "default", Name: name}, m)).To(Succeed())
		return meta.IsStatusConditionTrue(m.Status.Conditions, clusterv1.MachineHealthCheckSucceededCondition)
	}
}

// TestADeletionContinuesInAFreeze: a Machine that was being deleted before its Cluster was frozen is finished meanwhile, and another one is
// created for it. One that is unhealthy is not replaced, although nothing but the freeze is in its way.
func TestADeletionContinuesInAFreeze(t *testing.T) {
	const hook = "pre-terminate.delete.hook.machine.cluster.x-k8s.io/test"
	g, ctx := NewWithT(t), t.Context()
	env, c := startServer(t)
	target, err := coretest.NewHangingTarget(env.Config)
	g.Expect(err).NotTo(HaveOccurred())
	t.Cleanup(target.End)
	t.Cleanup(runCore(t, c, kubeconfigOf(t, &coretest.Requests{}, env, "core"), "--webhook-port=0",
		"--machine-safety-apiserver-statuscheck-timeout=3s", "--machine-safety-recovery-grace=1h", "--machine-health-timeout=1h"))
	deployment := createDeployment(t, c, target.Kubeconfig())
	g.Expect(c.Patch(ctx, deployment, client.RawPatch(types.MergePatchType, []byte(`{"spec":{"replicas":2}}`)))).To(Succeed())
	list := &clusterv1.MachineList{Items: awaitJudged(t, c, 2)}
	doomed, ill := &list.Items[0], &list.Items[1]
	annotate := func(machine *clusterv1.Machine, key, value string) {
		g.Expect(c.Patch(ctx, machine, client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"`+key+`":`+value+`}}}`)))).
			To(Succeed())
	}
	annotate(doomed, hook, `""`)
	g.Expect(c.Delete(ctx, doomed)).To(Succeed())
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(doomed), doomed)).To(Succeed())
		g.Expect(meta.FindStatusCondition(doomed.Status.Conditions, clusterv1.MachineDeletingCondition)).
			To(HaveValue(HaveField("Reason", clusterv1.MachineDeletingWaitingForPreTerminateHookReason)))
	}).WithTimeout(timeout).Should(Succeed())

	target.Hang(coretest.HangAtFirstByte)
	target.CloseClientConnections()
	awaitFreeze(t, freeze.TargetAPIServerUnreachableReason)
	target.Answer()
	target.CloseClientConnections()
	awaitFreeze(t, freeze.RecoveringReason)
	annotate(ill, clusterv1.RemediateMachineAnnotation, `""`)
	annotate(doomed, hook, `null`)
	g.Eventually(func() string {
		if err := c.Get(ctx, client.ObjectKeyFromObject(doomed), doomed); err != nil {
			return err.Error()
		}
		return fmt.Sprint(doomed.Annotations, meta.FindStatusCondition(doomed.Status.Conditions, clusterv1.MachineDeletingCondition))
	}).WithTimeout(timeout).Should(ContainSubstring("not found"))
	g.Eventually(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(ill), ill)).To(Succeed())
		g.Expect(ill.DeletionTimestamp.IsZero()).To(BeTrue())
		g.Expect(meta.FindStatusCondition(ill.Status.Conditions, clusterv1.MachineOwnerRemediatedCondition)).
			To(HaveValue(HaveField("Message", ContainSubstring(freeze.RecoveringReason))))
		g.Expect(c.List(ctx, list)).To(Succeed())
		g.Expect(list.Items).To(HaveLen(2), "one was made for the other")
	}).WithTimeout(timeout).Should(Succeed())
	awaitFreeze(t, freeze.RecoveringReason)
	g.Consistently(func(g Gomega) {
		g.Expect(c.Get(ctx, client.ObjectKeyFromObject(ill), ill)).To(Succeed())
		g.Expect(ill.DeletionTimestamp.IsZero()).To(BeTrue())
	}).WithTimeout(time.Second).Should(Succeed())
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
