package main

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	// syncedLabel goes from Machines to Nodes.
	syncedLabel = clusterv1.ManagedNodeLabelDomain + "/team"
	// refusal is the message of the policy that refuses it.
	refusal = "labels need an approval"
)

// TestARolloutWaitsForNodesThatAreRefused: a policy of the target cluster refuses a label of new Nodes, so that they keep the
// taint that holds pods off. No Machine that serves goes for one that cannot, and the deployment reports why, until the policy is
// lifted.
func TestARolloutWaitsForNodesThatAreRefused(t *testing.T) {
	const three = 3
	g := NewWithT(t)
	c := startCore(t)
	deployment := createDeployment(t, c, c.target)
	change := func(change func(*clusterv1.MachineDeployment)) {
		before := deployment.DeepCopy()
		change(deployment)
		g.Expect(c.Patch(t.Context(), deployment, client.MergeFrom(before))).To(Succeed())
	}
	change(func(d *clusterv1.MachineDeployment) {
		d.Spec.Replicas = ptr.To[int32](three)
		d.Spec.Rollout.Strategy.Type = clusterv1.RollingUpdateMachineDeploymentStrategyType
		d.Spec.Rollout.Strategy.RollingUpdate.MaxSurge = ptr.To(intstr.FromInt32(1))
		d.Spec.Rollout.Strategy.RollingUpdate.MaxUnavailable = ptr.To(intstr.FromInt32(0))
		d.Spec.Template.Labels[syncedLabel] = "a"
	})
	g.Eventually(c.serving(t, three)).WithTimeout(timeout).Should(Succeed())
	old := c.machineUIDs(t, g)
	allow := c.refuseNewLabels(t)

	change(func(d *clusterv1.MachineDeployment) { d.Spec.Template.Spec.Version = "v1.36.9" })
	g.Eventually(func(g Gomega) {
		refused := 0
		for _, machine := range c.machines(t, g) {
			if found := meta.FindStatusCondition(
				machine.Status.Conditions,
				clusterv1.MachineNodeHealthyCondition,
			); found != nil &&
				found.Reason == "NodeSyncFailed" {
				g.Expect(old).NotTo(HaveKey(machine.UID))
				g.Expect(found.Message).To(ContainSubstring(refusal))
				refused++
			}
		}
		g.Expect(refused).To(Equal(1), "one more than wanted may be there")
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment)).To(Succeed())
		ready := meta.FindStatusCondition(deployment.Status.Conditions, clusterv1.MachineDeploymentMachinesReadyCondition)
		g.Expect(ready).NotTo(BeNil())
		g.Expect(ready.Message).To(ContainSubstring(refusal))
		g.Expect(deployment.Status.AvailableReplicas).To(HaveValue(BeEquivalentTo(three)))
	}).WithTimeout(timeout).Should(Succeed())
	g.Consistently(func(g Gomega) {
		there := 0
		for _, machine := range c.machines(t, g) {
			if old[machine.UID] {
				g.Expect(machine.DeletionTimestamp).To(BeNil(), "it serves, and no other does in its place")
				there++
			}
		}
		g.Expect(there).To(Equal(three))
	}).WithTimeout(timeout / 10).Should(Succeed())

	allow()
	g.Eventually(func(g Gomega) {
		c.serving(t, three)(g)
		for uid := range c.machineUIDs(t, g) {
			g.Expect(old).NotTo(HaveKey(uid))
		}
	}).WithTimeout(3 * timeout).Should(Succeed())
}

func (c *running) machines(t *testing.T, g Gomega) []clusterv1.Machine {
	list := &clusterv1.MachineList{}
	g.Expect(c.List(t.Context(), list)).To(Succeed())
	return list.Items
}

func (c *running) machineUIDs(t *testing.T, g Gomega) map[types.UID]bool {
	uids := map[types.UID]bool{}
	for _, machine := range c.machines(t, g) {
		uids[machine.UID] = true
	}
	return uids
}

// serving is satisfied by so many Machines that are available, and none beside them; their Nodes have the label, and not the
// taint that holds pods off.
func (c *running) serving(t *testing.T, n int) func(Gomega) {
	return func(g Gomega) {
		machines := c.machines(t, g)
		g.Expect(machines).To(HaveLen(n))
		for _, machine := range machines {
			g.Expect(meta.IsStatusConditionTrue(machine.Status.Conditions, clusterv1.AvailableCondition)).To(BeTrue())
			node := &corev1.Node{}
			g.Expect(c.Get(t.Context(), client.ObjectKey{Name: machine.Status.NodeRef.Name}, node)).To(Succeed())
			g.Expect(node.Labels).To(HaveKey(syncedLabel))
			g.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", clusterv1.NodeUninitializedTaint.Key)))
		}
	}
}

// refuseNewLabels has the target cluster refuse the label on Nodes that do not have it, and returns how to lift that.
func (c *running) refuseNewLabels(t *testing.T) (allow func()) {
	t.Helper()
	g := NewWithT(t)
	has := func(object string) string {
		return "has(" + object + ".metadata.labels) && '" + syncedLabel + "' in " + object + ".metadata.labels"
	}
	name := metav1.ObjectMeta{Name: "labels"}
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: name, Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
		MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
			RuleWithOperations: admissionregistrationv1.RuleWithOperations{
				Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
				Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
			},
		}}},
		Validations: []admissionregistrationv1.Validation{{
			Expression: "!(" + has("object") + ") || oldObject != null && (" + has("oldObject") + ")", Message: refusal,
		}},
	}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: name,
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: policy.Name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	g.Expect(c.Create(t.Context(), policy)).To(Succeed())
	g.Expect(c.Create(t.Context(), binding)).To(Succeed())
	g.Eventually(func() error {
		probe := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "probe", Labels: map[string]string{syncedLabel: "a"}}}
		return c.Create(t.Context(), probe, client.DryRunAll)
	}).WithTimeout(timeout).Should(Satisfy(apierrors.IsInvalid), "the policy should be in force")
	return func() {
		g.Expect(c.Delete(t.Context(), binding)).To(Succeed())
		g.Expect(c.Delete(t.Context(), policy)).To(Succeed())
	}
}
