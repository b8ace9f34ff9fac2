package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/core/machine"
	"millwright.dev/test/coretest"
)

const poolLabel = "node.cluster.x-k8s.io/pool"

// TestRecordComesBeforeTheNode: a core that dies with the write of the record has not touched the Node, and the next one goes
// on from there. One that dies with the change of the Node leaves what the record names.
func TestRecordComesBeforeTheNode(t *testing.T) {
	core.MortalTarget(t)
	f := newFixture(t, version.V1Beta2)
	node := f.run()
	f.awaitsNothing()
	t.Cleanup(func() { core.Restart(t) })
	labelled := func(value string) func(Gomega, *corev1.Node) {
		return func(g Gomega, n *corev1.Node) { g.Expect(n.Labels).To(HaveKeyWithValue(poolLabel, value)) }
	}

	died := core.Crash(f.namespace, 1)
	f.patchMachine(func(m *clusterv1.Machine) { m.Labels[poolLabel] = "a" })
	f.Eventually(died).WithTimeout(timeout).Should(Receive(HaveSuffix("/machines/" + f.machine.Name)))
	f.refresh(f.machine)
	f.Expect(f.machine.Annotations).To(HaveKeyWithValue(machine.LabelsOnNodeAnnotation, poolLabel))
	f.refresh(node)
	f.Expect(node.Labels).NotTo(HaveKey(poolLabel), "the record is first")
	core.Restart(t)
	f.eventuallyNode(node.Name, labelled("a"))
	f.awaitsNothing()

	// With its removal from the Node the core dies before the record is cleared.
	died = core.Crash(f.namespace, 1)
	f.patchMachine(func(m *clusterv1.Machine) { delete(m.Labels, poolLabel) })
	f.Eventually(died).WithTimeout(timeout).Should(Receive(HaveSuffix("/nodes/" + node.Name)))
	f.refresh(node)
	f.Expect(node.Labels).NotTo(HaveKey(poolLabel))
	f.refresh(f.machine)
	f.Expect(f.machine.Annotations).To(HaveKeyWithValue(machine.LabelsOnNodeAnnotation, poolLabel))
	core.Restart(t)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Annotations).To(HaveKeyWithValue(machine.LabelsOnNodeAnnotation, ""))
	})
}

// TestInitializationSurvivesACrash: a core that dies before it has recorded that the taints of the initialization had their
// turn brings them once more, and then records it. They come again to a Node that was registered again.
func TestInitializationSurvivesACrash(t *testing.T) {
	core.MortalTarget(t)
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Taints = []clusterv1.MachineTaint{
		{Key: "example.com/once", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationOnInitialization},
	}
	f.createOwned()
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Phase).To(Equal("Provisioned"))
		g.Expect(m.Annotations).To(HaveKeyWithValue(machine.TaintsInitializedAnnotation, ""), "they are to come")
	})
	f.awaitsNothing()
	t.Cleanup(func() { core.Restart(t) })
	once := ContainElement(HaveField("Key", "example.com/once"))
	initialized := func(node *corev1.Node) {
		t.Helper()
		f.eventuallyNode(node.Name, func(g Gomega, n *corev1.Node) { g.Expect(n.Spec.Taints).To(once) })
		f.eventually(func(g Gomega, m *clusterv1.Machine) {
			g.Expect(m.Annotations).To(HaveKeyWithValue(machine.TaintsInitializedAnnotation, string(node.UID)))
		})
	}

	died := core.Crash(f.namespace, 1)
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	f.Eventually(died).WithTimeout(timeout).Should(Receive(HaveSuffix("/nodes/" + node.Name)))
	f.patchNode(node, func(n *corev1.Node) { n.Spec.Taints = nil })
	core.Restart(t)
	initialized(node)

	f.Expect(core.Client.Delete(t.Context(), node)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("False/NodeDeleted"))
	})
	initialized(core.Node(t, f.machine.Name, f.providerID(), true))
}

// TestNodeOfAnotherCore: a Machine that is linked with its Node and has no record was looked after by another core, whose marks
// on the Node are believed, once.
func TestNodeOfAnotherCore(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.machine.Spec.Taints = []clusterv1.MachineTaint{
		{Key: "example.com/once", Effect: corev1.TaintEffectNoSchedule, Propagation: clusterv1.MachineTaintPropagationOnInitialization},
	}
	node := f.run()
	f.awaitsNothing()
	f.annotate(f.machine, clusterv1.PausedAnnotation, ptr.To(""))
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Paused")).To(Equal("True/Paused")) })
	f.patchNode(node, func(n *corev1.Node) {
		n.Labels["node.cluster.x-k8s.io/old"] = "x"
		n.Annotations[clusterv1.LabelsFromMachineAnnotation] = "node.cluster.x-k8s.io/old"
		n.Spec.Taints = []corev1.Taint{{Key: "example.com/old", Effect: corev1.TaintEffectNoSchedule}}
		n.Annotations[clusterv1.TaintsFromMachineAnnotation] = "example.com/old:NoSchedule"
	})
	f.patchMachine(func(m *clusterv1.Machine) {
		for _, key := range []string{machine.LabelsOnNodeAnnotation, machine.TaintsOnNodeAnnotation, machine.TaintsInitializedAnnotation,
			clusterv1.PausedAnnotation} {
			delete(m.Annotations, key)
		}
		m.Labels[poolLabel] = "a"
	})
	f.eventuallyNode(node.Name, func(g Gomega, n *corev1.Node) {
		g.Expect(n.Labels).To(And(HaveKeyWithValue(poolLabel, "a"), Not(HaveKey("node.cluster.x-k8s.io/old"))))
		g.Expect(n.Spec.Taints).NotTo(ContainElement(HaveField("Key", "example.com/old")))
		g.Expect(n.Spec.Taints).NotTo(ContainElement(HaveField("Key", "example.com/once")), "the Node was initialized long ago")
	})
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Annotations).To(HaveKeyWithValue(machine.LabelsOnNodeAnnotation, poolLabel))
		g.Expect(m.Annotations).To(HaveKeyWithValue(machine.TaintsInitializedAnnotation, string(node.UID)))
		g.Expect(m.Annotations).NotTo(HaveKey(machine.TaintsOnNodeAnnotation))
	})
}

// TestRecordThatIsRefused: without the record the Node is not changed, and the Machine reports it in the words of the API server,
// also when it is the first. A Machine without a record is not linked: the next core would believe its Node.
func TestRecordThatIsRefused(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	allow := f.refuseMachines("!('"+machine.LabelsOnNodeAnnotation+"' in object.metadata.?annotations.orValue({}))", "records need a ticket")
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.provision()
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("False/NodeSyncFailed"))
		g.Expect(message(m, "NodeHealthy")).To(And(ContainSubstring("records need a ticket"), ContainSubstring("since 20")))
		g.Expect(condition(m, "Available")).To(Equal("False/NotReady"))
		g.Expect(m.Status.NodeRef.Name).To(BeEmpty())
	})
	f.refresh(node)
	f.Expect(node.Annotations).NotTo(HaveKey(clusterv1.MachineAnnotation))
	allow()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Available")).To(Equal("True/Available")) })

	allow = f.refuseMachines(
		"!object.metadata.?annotations.orValue({})['"+machine.LabelsOnNodeAnnotation+"'].contains('pool')",
		"pools need a ticket",
	)
	f.patchMachine(func(m *clusterv1.Machine) { m.Labels[poolLabel] = "a" })
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("True/NodeSyncFailed"))
		g.Expect(message(m, "NodeHealthy")).To(ContainSubstring("pools need a ticket"))
	})
	f.refresh(node)
	f.Expect(node.Labels).NotTo(HaveKey(poolLabel))
	allow()
	f.eventuallyNode(node.Name, func(g Gomega, n *corev1.Node) { g.Expect(n.Labels).To(HaveKeyWithValue(poolLabel, "a")) })
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("True/NodeHealthy"))
	})
}

// TestRecordThatIsNotKept: a policy takes the record out of what it lets pass. There is no event then, and no end to it.
func TestRecordThatIsNotKept(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	allow := f.dropAnnotation(machine.LabelsOnNodeAnnotation)
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.provision()
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("False/NodeSyncFailed"))
		g.Expect(message(m, "NodeHealthy")).To(ContainSubstring("did not keep " + machine.LabelsOnNodeAnnotation))
		g.Expect(m.Spec.ProviderID).To(Equal(f.providerID()))
		g.Expect(m.Status.NodeRef.Name).To(BeEmpty())
	})
	f.refresh(node)
	f.Expect(node.Annotations).NotTo(HaveKey(clusterv1.MachineAnnotation))
	writes := len(core.Requests.Writes("/" + f.machine.Name))
	f.Consistently(func() int { return len(core.Requests.Writes("/"+f.machine.Name)) - writes }).WithTimeout(quiet).
		Should(BeNumerically("<", 15), "it is tried again less and less often")
	allow()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Available")).To(Equal("True/Available")) })
}

// dropAnnotation has the API server take an annotation out of Machines of the namespace.
func (f *fixture) dropAnnotation(key string) (allow func()) {
	f.t.Helper()
	name := "drop-" + f.namespace
	policy := &admissionregistrationv1.MutatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.ReinvocationPolicy = admissionregistrationv1.NeverReinvocationPolicy
	policy.Spec.FailurePolicy = ptr.To(admissionregistrationv1.Fail)
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: f.namespace}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups:   []string{clusterv1.GroupVersion.Group},
				APIVersions: []string{"*"},
				Resources:   []string{"machines"},
			},
		}}},
	}
	policy.Spec.MatchConditions = []admissionregistrationv1.MatchCondition{{
		Name: "has", Expression: "'" + key + "' in object.metadata.?annotations.orValue({})",
	}}
	policy.Spec.Mutations = []admissionregistrationv1.Mutation{{
		PatchType: admissionregistrationv1.PatchTypeJSONPatch,
		JSONPatch: &admissionregistrationv1.JSONPatch{
			Expression: `[JSONPatch{op: "remove", path: "/metadata/annotations/" + jsonpatch.escapeKey("` + key + `")}]`,
		},
	}}
	binding := &admissionregistrationv1.MutatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name}, Spec: admissionregistrationv1.MutatingAdmissionPolicyBindingSpec{PolicyName: name},
	}
	core.Create(f.t, policy)
	core.Create(f.t, binding)
	allow = func() {
		for _, obj := range []client.Object{binding, policy} {
			_ = core.Client.Delete(f.t.Context(), obj)
		}
	}
	f.t.Cleanup(allow)
	f.Eventually(func(g Gomega) {
		live := &clusterv1.Machine{}
		live.Namespace, live.Name = f.namespace, f.machine.Name
		g.Expect(core.Client.Patch(f.t.Context(), live, client.RawPatch(types.MergePatchType,
			[]byte(`{"metadata":{"annotations":{"`+key+`":"x"}}}`)), client.DryRunAll)).To(Succeed())
		g.Expect(live.Annotations).NotTo(HaveKey(key), "the policy should be in force")
	}).WithTimeout(timeout).Should(Succeed())
	return allow
}
