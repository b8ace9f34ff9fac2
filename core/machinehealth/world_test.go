package machinehealth_test

import (
	"context"
	"time"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest/workers"
)

// machine makes a Machine, labelled pool=a, and its Node with that condition Ready; without a Node for "".
func (w *world) machine(name string, ready corev1.ConditionStatus, change ...func(*clusterv1.Machine)) *clusterv1.Machine {
	w.t.Helper()
	m := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name, Labels: map[string]string{
			"pool": "a", clusterv1.ClusterNameLabel: workers.ClusterName}},
		Spec: clusterv1.MachineSpec{
			ClusterName: workers.ClusterName, ProviderID: "test:///" + w.Namespace + "/" + name,
			Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("none")},
			InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "test.example.com", Kind: "None", Name: name},
		},
	}
	for _, c := range change {
		c(m)
	}
	w.Create(m)
	if ready != "" {
		w.node(name, ready)
		w.status(name, func(s *clusterv1.MachineStatus) { s.NodeRef.Name = w.nodeName(name) })
	}
	return m
}

func (w *world) nodeName(machine string) string { return w.Namespace + "-" + machine }

// node makes the Node of a Machine.
func (w *world) node(machine string, ready corev1.ConditionStatus) {
	w.t.Helper()
	node := &corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: w.nodeName(machine)}, Spec: corev1.NodeSpec{ProviderID: "test:///" + w.Namespace + "/" + machine},
	}
	w.Create(node)
	w.t.Cleanup(func() { _ = direct.Delete(context.WithoutCancel(w.Ctx), node) })
	w.reports(machine, ready, 0)
}

// reports has the kubelet of a Machine report Ready, since a while.
func (w *world) reports(machine string, ready corev1.ConditionStatus, since time.Duration) {
	w.t.Helper()
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: w.nodeName(machine)}}
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(node), node)).To(Succeed())
	before := node.DeepCopy()
	now := metav1.Now()
	node.Status.Conditions = []corev1.NodeCondition{{Type: corev1.NodeReady, Status: ready, Reason: "Kubelet", LastHeartbeatTime: now,
		LastTransitionTime: metav1.NewTime(now.Add(-since))}}
	w.G.Expect(direct.Status().Patch(w.Ctx, node, client.MergeFrom(before))).To(Succeed())
}

// status changes the status of a Machine, as the Machine controller does.
func (w *world) status(name string, change func(*clusterv1.MachineStatus)) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		m := &clusterv1.Machine{}
		g.Expect(direct.Get(w.Ctx, w.key(name), m)).To(Succeed())
		before := m.DeepCopy()
		change(&m.Status)
		g.Expect(direct.Status().Patch(w.Ctx, m, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))).To(Succeed())
	})
}

// check makes a MachineHealthCheck of pool=a, by which a Node must not be other than Ready for a second.
func (w *world) check(name string, change ...func(*clusterv1.MachineHealthCheck)) *clusterv1.MachineHealthCheck {
	w.t.Helper()
	c := &clusterv1.MachineHealthCheck{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: name},
		Spec: clusterv1.MachineHealthCheckSpec{
			ClusterName: workers.ClusterName, Selector: metav1.LabelSelector{MatchLabels: map[string]string{"pool": "a"}},
			Checks: clusterv1.MachineHealthCheckChecks{UnhealthyNodeConditions: []clusterv1.UnhealthyNodeCondition{
				{Type: corev1.NodeReady, Status: "False", TimeoutSeconds: ptr.To[int32](1)}}},
		},
	}
	for _, f := range change {
		f(c)
	}
	w.Create(c)
	return c
}

// conditionOf is status and reason of a condition of a Machine; "" without one.
func (w *world) conditionOf(name, kind string) string {
	m := &clusterv1.Machine{}
	if err := direct.Get(w.Ctx, w.key(name), m); err != nil {
		return err.Error()
	}
	if c := meta.FindStatusCondition(m.Status.Conditions, kind); c != nil {
		return string(c.Status) + "/" + c.Reason
	}
	return ""
}

// becomes waits until a condition of a Machine is so.
func (w *world) becomes(name, kind, want string) {
	w.t.Helper()
	w.G.Eventually(func() string { return w.conditionOf(name, kind) }).
		WithTimeout(workers.Timeout).
		WithPolling(workers.PollInterval).
		Should(Equal(want))
}

// current reads a MachineHealthCheck.
func (w *world) current(name string) *clusterv1.MachineHealthCheck {
	c := &clusterv1.MachineHealthCheck{}
	w.G.Expect(direct.Get(w.Ctx, w.key(name), c)).To(Succeed())
	return c
}

// counts waits until a MachineHealthCheck has these numbers, and RemediationAllowed that status and reason.
func (w *world) counts(name string, targets, healthy, allowed int32, condition string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		c := w.current(name)
		g.Expect(c.Status.ExpectedMachines).To(HaveValue(Equal(targets)))
		g.Expect(c.Status.CurrentHealthy).To(HaveValue(Equal(healthy)))
		g.Expect(c.Status.RemediationsAllowed).To(HaveValue(Equal(allowed)))
		g.Expect(c.Status.Targets).To(HaveLen(int(targets)))
		g.Expect(c.Status.ObservedGeneration).To(Equal(c.Generation))
		found := meta.FindStatusCondition(c.Status.Conditions, clusterv1.MachineHealthCheckRemediationAllowedCondition)
		g.Expect(found).NotTo(BeNil())
		g.Expect(string(found.Status) + "/" + found.Reason).To(Equal(condition))
	})
}

// change changes an object, whatever others write meanwhile.
func change[O client.Object](w *world, object O, f func(O)) {
	w.t.Helper()
	w.G.Expect(direct.Get(w.Ctx, client.ObjectKeyFromObject(object), object)).To(Succeed())
	before := object.DeepCopyObject().(client.Object)
	f(object)
	w.G.Expect(direct.Patch(w.Ctx, object, client.MergeFrom(before))).To(Succeed())
}
