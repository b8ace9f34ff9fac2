package machine_test

import (
	"context"
	"math"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// refuseLabel has the target cluster refuse every Node with a label, and returns how to stop that.
func (f *fixture) refuseLabel(key, because string) (allow func()) {
	f.t.Helper()
	name := "refuse-" + f.namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicySpec{
			MatchConstraints: &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionregistrationv1.RuleWithOperations{
					Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
					Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
				},
			}}},
			Validations: []admissionregistrationv1.Validation{{
				Expression: "!has(object.metadata.labels) || !('" + key + "' in object.metadata.labels)", Message: because,
			}},
		},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
		},
	}
	core.Create(f.t, policy)
	core.Create(f.t, binding)
	allow = func() {
		for _, obj := range []client.Object{binding, policy} {
			_ = core.Client.Delete(f.t.Context(), obj)
		}
	}
	f.t.Cleanup(allow)
	f.Eventually(func() error {
		probe := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{key: ""}}}
		return core.Client.Create(f.t.Context(), probe, client.DryRunAll)
	}).WithTimeout(timeout).Should(Satisfy(apierrors.IsInvalid), "the policy should be in force")
	return allow
}

// TestNodeThatWasNeverSyncedIsNotAvailable: a policy of the target cluster refuses one label, so the Node keeps its taint
// and no Pod can come. A rollout goes by Available.
func TestNodeThatWasNeverSyncedIsNotAvailable(t *testing.T) {
	f := newFixture(t, version.V1Beta2)
	key := "node.cluster.x-k8s.io/" + f.namespace
	requests := f.counted()
	allow := f.refuseLabel(key, "labels need a ticket")
	f.createOwned()
	f.patchMachine(func(m *clusterv1.Machine) { m.Labels[key] = "x" })
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.provision()
	begun := time.Now()
	node := core.Node(t, f.machine.Name, f.providerID(), true)

	unavailable := func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.NodeRef.Name).To(Equal(node.Name), "the Node is known")
		g.Expect(condition(m, "NodeReady")).To(Equal("True/NodeReady"), "what its kubelet says")
		g.Expect(condition(m, "NodeHealthy")).To(Equal("False/NodeSyncFailed"))
		g.Expect(message(m, "NodeHealthy")).To(And(ContainSubstring("labels need a ticket"), ContainSubstring("since 20")))
		g.Expect(condition(m, "Ready")).To(Equal("False/NotReady"))
		g.Expect(condition(m, "Available")).To(Equal("False/NotReady"))
	}
	f.eventually(unavailable)
	f.eventuallyRecorded("NodeSyncFailed")
	f.refresh(f.machine)
	reported := message(f.machine, "NodeHealthy")
	f.Consistently(func(g Gomega) {
		m := &clusterv1.Machine{}
		g.Expect(core.Client.Get(t.Context(), client.ObjectKeyFromObject(f.machine), m)).To(Succeed())
		unavailable(g, m)
	}).WithTimeout(4 * time.Second).Should(Succeed())
	f.Expect(nodePatches(requests, node.Name)).To(BeNumerically("<=", attemptsSince(begun)), "it is tried again less and less often")

	core.Restart(t)
	f.eventuallyConnected()
	f.awaitsNothingBut(2)
	f.refresh(f.machine)
	unavailable(NewWithT(t), f.machine)
	f.Expect(message(f.machine, "NodeHealthy")).To(Equal(reported), "another process reports the same, and since when")

	allow()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Available")).To(Equal("True/Available")) })
	f.refresh(node)
	f.Expect(node.Labels).To(HaveKeyWithValue(key, "x"))
	f.Expect(node.Spec.Taints).NotTo(ContainElement(HaveField("Key", clusterv1.NodeUninitializedTaint.Key)))
}

// attemptsSince bounds how often a Node may have been patched since then, when each patch is refused: the pauses double from one second on.
func attemptsSince(begun time.Time) int { return 3 + int(math.Log2(1+time.Since(begun).Seconds())) }

// awaitsNothingBut waits until there are hardly any reconciles any more: attempts that come ever later.
func (f *fixture) awaitsNothingBut(attempts int) {
	f.t.Helper()
	f.Eventually(func(g Gomega) {
		before := core.Reconciles(f.namespace)
		g.Consistently(func() int { return core.Reconciles(f.namespace) - before }).WithTimeout(quiet).Should(BeNumerically("<=", attempts))
	}).WithTimeout(timeout).Should(Succeed())
}

// TestLaterSyncThatIsRefusedIsSeen: the Node serves Pods already, so the Machine stays Ready, and reports what is wrong.
func TestLaterSyncThatIsRefusedIsSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	key := "node.cluster.x-k8s.io/" + f.namespace
	requests := f.counted()
	node := f.run()
	allow := f.refuseLabel(key, "labels need a ticket")
	patches, begun := nodePatches(requests, node.Name), time.Now()
	f.patchMachine(func(m *clusterv1.Machine) { m.Labels[key] = "x" })

	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("True/NodeSyncFailed"))
		g.Expect(message(m, "NodeHealthy")).To(And(ContainSubstring("labels need a ticket"), ContainSubstring("since 20")))
		g.Expect(condition(m, "Ready")).To(Equal("True/Ready"))
		g.Expect(condition(m, "Available")).To(Equal("True/Available"))
	})
	f.eventuallyRecorded("NodeSyncFailed")
	f.Consistently(func(g Gomega) {
		g.Expect(nodePatches(requests, node.Name) - patches).To(BeNumerically("<=", attemptsSince(begun)))
	}).WithTimeout(3 * time.Second).Should(Succeed())

	allow()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("True/NodeHealthy"))
		g.Expect(message(m, "NodeHealthy")).To(BeEmpty())
	})
}

// TestAnnotationsBeyondTheLimitAreSeen: each annotation of the Machine fits, all of those of the Node do not.
func TestAnnotationsBeyondTheLimitAreSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	node := core.Node(t, f.machine.Name, f.providerID(), true)
	f.annotate(node, "example.com/of-another", ptr.To(strings.Repeat("x", 200<<10)))
	f.patchMachine(func(m *clusterv1.Machine) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, "node.cluster.x-k8s.io/long", strings.Repeat("x", 100<<10))
	})
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "NodeHealthy")).To(Equal("False/NodeSyncFailed"))
		g.Expect(message(m, "NodeHealthy")).To(ContainSubstring("Too long"))
		g.Expect(condition(m, "Available")).To(Equal("False/NotReady"))
	})
	f.annotate(node, "example.com/of-another", nil)
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Available")).To(Equal("True/Available")) })
}

// refuseMachines has the API server of the core refuse Machines of the namespace that do not fulfil an expression.
func (f *fixture) refuseMachines(expression, because string) (allow func()) {
	f.t.Helper()
	name := "refuse-machines-" + f.namespace
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
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
	probe := f.machine.DeepCopy()
	probe.ObjectMeta = metav1.ObjectMeta{Namespace: f.namespace, Name: "probe"}
	policy.Spec.Validations = []admissionregistrationv1.Validation{
		{Expression: "object.metadata.name != 'probe' && (" + expression + ")", Message: because},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec = admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	core.Create(f.t, policy)
	core.Create(f.t, binding)
	allow = func() {
		for _, obj := range []client.Object{binding, policy} {
			_ = core.Client.Delete(context.Background(), obj)
		}
	}
	f.t.Cleanup(allow)
	f.Eventually(func() error { return core.Client.Create(f.t.Context(), probe.DeepCopy(), client.DryRunAll) }).
		WithTimeout(timeout).Should(MatchError(ContainSubstring(because)), "the policy should be in force")
	return allow
}

// TestMachineWhoseProviderIDIsRefusedIsNotReady: all that is there rests on what the API server has not accepted.
func TestMachineWhoseProviderIDIsRefusedIsNotReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createOwned()
	allow := f.refuseMachines("!has(object.spec.providerID)", "IDs need a ticket")
	core.SetStatus(t, f.config, coretest.BootstrapReady(f.contract, "data"))
	f.provision()
	core.Node(t, f.machine.Name, f.providerID(), true)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(message(m, "Ready")).To(ContainSubstring("IDs need a ticket"))
		g.Expect(condition(m, "Ready")).NotTo(HavePrefix("True"))
		g.Expect(condition(m, "Available")).To(Equal("False/NotReady"))
		g.Expect(m.Status.Initialization.InfrastructureProvisioned).To(BeNil())
		g.Expect(m.Status.Phase).NotTo(Equal("Running"))
	})
	allow()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Available")).To(Equal("True/Available"))
		g.Expect(message(m, "Ready")).To(BeEmpty())
		g.Expect(m.Spec.ProviderID).To(Equal(f.providerID()))
		g.Expect(m.Status.Phase).To(Equal("Running"))
	})
}

// TestMachineWhoseFinalizerIsRefusedReportsIt: nothing is done for it.
func TestMachineWhoseFinalizerIsRefusedReportsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	allow := f.refuseMachines("!('"+clusterv1.MachineFinalizer+"' in object.metadata.?finalizers.orValue([]))", "finalizers are frozen")
	f.createMachine()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Ready")).To(Equal("Unknown/InternalError"))
		g.Expect(message(m, "Ready")).To(ContainSubstring("finalizers are frozen"))
		g.Expect(condition(m, "Available")).To(Equal("False/NotReady"))
	})
	allow()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Finalizers).To(ContainElement(clusterv1.MachineFinalizer))
		g.Expect(message(m, "Ready")).NotTo(ContainSubstring("frozen"))
	})
}

// TestRefusedLabelOfARunningMachineIsSeen: it continues to serve, and reports what is wrong; its deletion is refused likewise.
func TestRefusedLabelOfARunningMachineIsSeen(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.run()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Available")).To(Equal("True/Available")) })
	f.patchMachine(func(m *clusterv1.Machine) {
		metav1.SetMetaDataAnnotation(&m.ObjectMeta, clusterv1.PausedAnnotation, "")
	})
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(condition(m, "Paused")).To(Equal("True/Paused")) })
	f.patchMachine(func(m *clusterv1.Machine) { delete(m.Labels, clusterv1.ClusterNameLabel) })
	allow := f.refuseMachines("!('"+clusterv1.ClusterNameLabel+"' in object.metadata.?labels.orValue({}))", "labels are frozen")
	f.annotate(f.machine, clusterv1.PausedAnnotation, nil)
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Ready")).To(Equal("True/InternalError"))
		g.Expect(message(m, "Ready")).To(ContainSubstring("labels are frozen"))
		g.Expect(condition(m, "Available")).To(Equal("True/Available"))
	})
	allow()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Ready")).To(Equal("True/Ready"))
		g.Expect(m.Labels).To(HaveKey(clusterv1.ClusterNameLabel))
	})
}

// TestMachineWhoseEndIsRefusedReportsIt: nothing is left of it but the object.
func TestMachineWhoseEndIsRefusedReportsIt(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.createMachine()
	f.eventually(func(g Gomega, m *clusterv1.Machine) { g.Expect(m.Finalizers).NotTo(BeEmpty()) })
	allow := f.refuseMachines("'"+clusterv1.MachineFinalizer+"' in object.metadata.?finalizers.orValue([])", "finalizers are frozen")
	f.refresh(f.machine)
	f.Expect(core.Client.Delete(t.Context(), f.machine)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Deleting")).To(Equal("True/InternalError"))
		g.Expect(message(m, "Deleting")).To(ContainSubstring("finalizers are frozen"))
	})
	allow()
	f.eventuallyGone(f.machine)
}
