package e2e

import (
	"fmt"
	"path"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/test/sandbox"
)

// TestLife is the demo's scenario with one cluster, TestLifeWithTwoClusters with Machines and Nodes in
// different ones, with the core's webhooks and fewer machines.
func TestLife(t *testing.T) { life(sharedWorld(t, "life"), 3, 5) }

func TestLifeWithTwoClusters(t *testing.T) {
	booting.takeTurn(t)
	s, err := sandbox.Start(suite.ctx, sandbox.Options{Clusters: 2, LogDir: filepath.Join(suite.logs, "two-clusters")})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { NewWithT(t).Expect(s.Stop()).To(Succeed()) })
	life(newWorld(t, s, "life"), 2, 3)
}

// life creates few machines, scales up, replaces all, and deletes everything.
func life(w *world, few, more int) {
	w.t.Helper()
	w.expectOwnIdentities()

	w.Expect(w.scenario.Deploy(w.ctx, few)).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, few)).To(Succeed())
	w.expectCluster()
	w.expectMachines(few, "m5.large")
	w.expectLeftovers()
	if w.sandbox.Webhooks() {
		w.expectAdmission()
	}

	w.Expect(w.scenario.DeployWorkload(w.ctx, 6, 4)).To(Succeed())
	first := w.identities()
	w.Expect(w.scenario.Scale(w.ctx, int32(more))).To(Succeed())
	w.Expect(w.scenario.AwaitRunning(w.ctx, more)).To(Succeed())
	w.expectMachines(more, "m5.large")
	for uid, identity := range first {
		w.Expect(w.identities()).To(HaveKeyWithValue(uid, identity), "scaling up changes no existing Machine")
	}

	w.roll(more)

	w.Expect(w.scenario.DeleteWorkload(w.ctx)).To(Succeed())
	w.Expect(w.scenario.DeleteMachines(w.ctx)).To(Succeed())
	w.Expect(w.scenario.DeleteRest(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitNothingLeft(w.ctx)).To(Succeed())
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
	w.Expect(w.sandbox.Check()).To(Succeed())
}

// roll replaces all Machines and checks maxSurge 1 and maxUnavailable 0 of the MachineDeployment.
func (w *world) roll(count int) {
	w.t.Helper()
	w.Eventually(func() int { w.scenario.Watch.ResetExtremes(); return w.scenario.Watch.Extremes().Fewest }).Should(Equal(count))
	old := w.scenario.Watch.UIDs()
	w.Expect(w.scenario.Roll(w.ctx)).To(Succeed())
	w.Expect(w.scenario.AwaitRolled(w.ctx, old, count)).To(Succeed())
	extremes := w.scenario.Watch.Extremes()
	w.Expect(extremes.Most).To(Equal(count+1), "maxSurge is 1")
	w.Expect(extremes.Fewest).To(Equal(count), "maxUnavailable is 0")
	w.Expect(w.scenario.AwaitWorkload(w.ctx, 6)).To(Succeed())
	w.Expect(w.scenario.Watch.Violation()).NotTo(HaveOccurred())
	satisfied, states := w.scenario.Watch.BudgetSatisfied()
	w.Expect(satisfied).To(BeTrue())
	w.Expect(states).To(BeNumerically(">", count), "a roll of each Machine shows in the disruption budget")
	w.expectMachines(count, "m5.xlarge")
}

// expectOwnIdentities makes sure that no manager runs as an administrator.
func (w *world) expectOwnIdentities() {
	w.t.Helper()
	for manager, user := range map[*sandbox.Manager]string{
		w.sandbox.Core:        "system:serviceaccount:millwright-system:millwright-core",
		w.sandbox.AWS:         "system:serviceaccount:millwright-aws-system:millwright-aws",
		w.sandbox.CloudConfig: "system:serviceaccount:millwright-cloudconfig-system:millwright-cloudconfig",
	} {
		kubeconfig, err := manager.Kubeconfig()
		w.Expect(err).NotTo(HaveOccurred())
		c, err := sandbox.ClientFor(kubeconfig)
		w.Expect(err).NotTo(HaveOccurred())
		review := &authenticationv1.SelfSubjectReview{}
		w.Expect(c.Create(w.ctx, review)).To(Succeed())
		w.Expect(review.Status.UserInfo.Username).To(Equal(user))
	}
}

// expectLeftovers makes sure that what must be gone in the end is reported while it is there.
func (w *world) expectLeftovers() {
	w.t.Helper()
	left, err := w.sandbox.Leftovers(w.ctx)
	w.Expect(err).NotTo(HaveOccurred())
	for _, kind := range []string{
		"EC2: instance ", "EC2: volume ", "EC2: network interface ",
		": Node ", ": Machine ", ": AWSMachine ", ": CloudConfig ", ": Secret millwright-nodes/cloud-config-", ": Role ", ": RoleBinding ",
	} {
		w.Expect(left).To(ContainElement(ContainSubstring(kind)))
	}
}

func (w *world) expectCluster() {
	w.t.Helper()
	cluster := &clusterv1.Cluster{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: sandbox.SampleCluster}, cluster)).To(Succeed())
	w.Expect(cluster.Spec.InfrastructureRef.IsDefined()).To(BeFalse())
	w.Expect(cluster.Spec.ControlPlaneRef.IsDefined()).To(BeFalse())
	w.Expect(cluster.Status.Initialization.InfrastructureProvisioned).To(HaveValue(BeTrue()))
	w.Expect(cluster.Status.Initialization.ControlPlaneInitialized).To(HaveValue(BeTrue()))
}

// expectMachines checks every Machine, what it owns, its Node and its instance.
func (w *world) expectMachines(count int, instanceType string) {
	w.t.Helper()
	live := w.live()
	w.Expect(live).To(HaveLen(count))
	machines := w.machines()
	w.Expect(machines).To(HaveLen(count))
	for i := range machines {
		m := &machines[i]
		instance, ok := live[path.Base(m.Spec.ProviderID)]
		w.Expect(ok).To(BeTrue(), "%s has no instance", m.Name)
		w.Expect(instance.InstanceType).To(Equal(instanceType))
		w.Expect(m.Spec.ProviderID).To(Equal(fmt.Sprintf("aws:///%s/%s", instance.AvailabilityZone, instance.ID)))
		w.Expect(m.Status.FailureDomain).To(Equal(instance.AvailabilityZone))
		w.Expect(m.Status.Addresses).NotTo(BeEmpty())
		w.expectOwned(m)
		w.expectNode(m)
		w.expectNoTokens(m)
	}
}

// expectOwned makes sure that the Machine is the controller of what was created for it, in both versions
// of the contract.
func (w *world) expectOwned(m *clusterv1.Machine) {
	w.t.Helper()
	infra := &infrav1.AWSMachine{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: m.Spec.InfrastructureRef.Name}, infra)).To(Succeed())
	w.Expect(metav1.IsControlledBy(infra, m)).To(BeTrue())
	w.Expect(infra.Status.Ready).To(BeTrue())
	w.Expect(infra.Status.Initialization.Provisioned).To(HaveValue(BeTrue()))
	config := &bootstrapv1.CloudConfig{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKey{Namespace: w.namespace, Name: m.Spec.Bootstrap.ConfigRef.Name}, config)).To(Succeed())
	w.Expect(metav1.IsControlledBy(config, m)).To(BeTrue())
	w.Expect(m.Spec.Bootstrap.DataSecretName).To(HaveValue(Equal(config.Name)))
	secret := &corev1.Secret{}
	w.Expect(w.control.Get(w.ctx, client.ObjectKeyFromObject(config), secret)).To(Succeed())
	w.Expect(metav1.IsControlledBy(secret, config)).To(BeTrue())
	w.Expect(string(secret.Type)).To(Equal("cluster.x-k8s.io/secret"))
}

func (w *world) expectNode(m *clusterv1.Machine) {
	w.t.Helper()
	node := &corev1.Node{}
	w.Expect(w.target.Get(w.ctx, client.ObjectKey{Name: m.Status.NodeRef.Name}, node)).To(Succeed())
	w.Expect(node.Name).To(Equal(m.Name))
	w.Expect(node.Spec.ProviderID).To(Equal(m.Spec.ProviderID))
	w.Expect(node.Labels).To(HaveKeyWithValue("node.cluster.x-k8s.io/pool", "workers"), "from the Machine")
	w.Expect(node.Labels).To(HaveKeyWithValue("sample.millwright.dev/pool", "workers"), "from the CloudConfig")
	w.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", clusterv1.NodeUninitializedTaint.Key)))
}

// expectNoTokens makes sure that a machine that has joined holds no token any more, and that its Node
// may read its Secret in their place.
func (w *world) expectNoTokens(m *clusterv1.Machine) {
	w.t.Helper()
	names := nodeaccess.NamesFor(w.namespace, sandbox.SampleCluster, m.Name)
	w.Eventually(func(g Gomega) {
		secrets := &corev1.SecretList{}
		g.Expect(w.target.List(w.ctx, secrets, client.MatchingLabels{nodeaccess.HashLabel: names.Hash})).To(Succeed())
		var found []string
		for _, s := range secrets.Items {
			found = append(found, s.Name)
		}
		g.Expect(found).To(ConsistOf(names.Object()), "the bootstrap tokens of %s are deleted", m.Name)
	}).Should(Succeed())
}
