package e2e

import (
	"fmt"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const (
	frozenLabel = "safety.millwright.dev/frozen"
	// keptLabel is of Machines whose deletion the API server refuses.
	keptLabel = "example.com/kept"
)

// TestOvershoot: another controller creates five Machines for the set of three, and a policy refuses their deletion. Deployment and set are
// frozen and report it, also after a restart of the core; the freeze ends when few enough are left, or manually by either annotation; no
// Machine of the set is deleted, and while frozen none is created.
func TestOvershoot(t *testing.T) {
	w := manyWorld(t, &failing, "overshoot")
	w.start(3)
	before := w.scenario.Watch.UIDs()
	allow := w.keepMachines()
	w.scenario.Watch.ResetExtremes()
	w.intrude("a", 5)
	w.awaitFrozen("overshoot", "Overshoot")
	w.sandbox.Core.Kill()
	w.Expect(w.sandbox.Core.Start(w.ctx)).To(Succeed())
	w.awaitFrozen("overshoot", "Overshoot")
	w.Expect(w.machines()).To(HaveLen(8))

	w.release(3)
	w.awaitFrozen("", "NotFrozen")
	w.Eventually(w.machines).Should(HaveLen(5))
	w.intrude("b", 3)
	w.awaitFrozen("overshoot", "Overshoot")
	w.unfreeze("safety.millwright.dev/unfreeze")
	w.Expect(w.machines()).To(HaveLen(8), "the surplus is still there")
	allow()
	w.release(5)
	w.Eventually(w.scenario.Watch.UIDs).Should(Equal(before), "the added ones are deleted, the others stay")
	w.Expect(w.scenario.Watch.Extremes().Most).To(Equal(8), "no other was created")

	w.annotateDeployment(`{"metadata":{"labels":{"` + frozenLabel + `":"by-me"}}}`)
	w.awaitFrozen("by-me", "FrozenByLabel")
	w.change(func(md *clusterv1.MachineDeployment) { md.Spec.Replicas = ptr.To[int32](4) })
	w.Eventually(func(g Gomega) {
		up := meta.FindStatusCondition(w.setOf(g).Status.Conditions, clusterv1.MachineSetScalingUpCondition)
		g.Expect(up).NotTo(BeNil())
		g.Expect(up.Message).To(ContainSubstring("frozen (FrozenByLabel)"))
		g.Expect(w.setOf(g).Spec.Replicas).To(HaveValue(BeEquivalentTo(4)))
	}).Should(Succeed())
	w.Expect(w.scenario.Watch.UIDs()).To(Equal(before), "while frozen none is created")
	w.unfreeze("safety.machine.sapcloud.io/unfreeze")
	w.Expect(w.scenario.AwaitRunning(w.ctx, 4)).To(Succeed())
	w.expectInstances(4)
	w.expectRights()
}

// expectRights checks that only the policy has refused anything to the managers: its refusal reads as one for a missing right.
func (w *world) expectRights() {
	w.t.Helper()
	lines, err := w.sandbox.Forbidden()
	w.Expect(err).NotTo(HaveOccurred())
	w.Expect(lines).NotTo(BeEmpty(), "the policy has refused deletions")
	for _, line := range lines {
		w.Expect(strings.ReplaceAll(line, "is forbidden: ValidatingAdmissionPolicy 'keep-", "")).NotTo(ContainSubstring("is forbidden: "))
	}
}

// setOf is the only MachineSet.
func (w *world) setOf(g Gomega) *clusterv1.MachineSet {
	list := &clusterv1.MachineSetList{}
	g.Expect(w.control.List(w.ctx, list, client.InNamespace(w.namespace))).To(Succeed())
	g.Expect(list.Items).To(HaveLen(1))
	return &list.Items[0]
}

// awaitFrozen waits until label and condition of deployment and set are so; "" is no label.
func (w *world) awaitFrozen(label, reason string) {
	w.t.Helper()
	w.Eventually(func(g Gomega) {
		md, set := w.deployment(), w.setOf(g)
		ofSet := ""
		if label != "" {
			ofSet = "machinedeployment"
		}
		g.Expect(md.Labels[frozenLabel]).To(Equal(label))
		g.Expect(set.Labels[frozenLabel]).To(Equal(ofSet))
		for _, conditions := range [][]metav1.Condition{md.Status.Conditions, set.Status.Conditions} {
			found := meta.FindStatusCondition(conditions, "Frozen")
			g.Expect(found).NotTo(BeNil())
			g.Expect(found.Reason).To(Equal(reason))
			g.Expect(found.Status == metav1.ConditionTrue).To(Equal(label != ""))
		}
	}).Should(Succeed())
}

// unfreeze requests the end of a freeze, and waits for it and for the removal of the request.
func (w *world) unfreeze(annotation string) {
	w.t.Helper()
	w.annotateDeployment(fmt.Sprintf(`{"metadata":{"annotations":{%q:""}}}`, annotation))
	w.awaitFrozen("", "NotFrozen")
	w.Expect(w.deployment().Annotations).NotTo(HaveKey(annotation))
}

func (w *world) annotateDeployment(patch string) {
	w.t.Helper()
	w.Expect(w.control.Patch(w.ctx, w.deployment(), client.RawPatch(types.MergePatchType, []byte(patch)))).To(Succeed())
}

// intrude is what another controller does: it creates Machines for the set beyond its replicas. They have neither an instance nor
// bootstrap data.
func (w *world) intrude(name string, count int) {
	w.t.Helper()
	set := w.setOf(w.WithT)
	model := w.machines()[0]
	for i := range count {
		machine := &clusterv1.Machine{Spec: *model.Spec.DeepCopy(), ObjectMeta: metav1.ObjectMeta{
			Namespace: w.namespace, Name: fmt.Sprintf("intruder-%s-%d", name, i), Labels: map[string]string{keptLabel: ""},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))},
		}}
		for key, value := range set.Spec.Template.Labels {
			machine.Labels[key] = value
		}
		machine.Spec.ProviderID, machine.Spec.InfrastructureRef.Name, machine.Spec.Bootstrap.ConfigRef.Name = "", machine.Name, machine.Name
		machine.Spec.Bootstrap.DataSecretName = nil
		w.Expect(w.control.Create(w.ctx, machine)).To(Succeed())
	}
}

// release removes the label from so many Machines that have it.
func (w *world) release(count int) {
	w.t.Helper()
	released := 0
	for _, machine := range w.machines() {
		if _, kept := machine.Labels[keptLabel]; kept && released < count {
			patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+keptLabel+`":null}}}`))
			w.Expect(client.IgnoreNotFound(w.control.Patch(w.ctx, &machine, patch))).To(Succeed())
			released++
		}
	}
}

// keepMachines has the API server refuse the deletion of Machines with the label, and returns a function that ends that.
func (w *world) keepMachines() (allow func()) {
	w.t.Helper()
	name := "keep-" + w.namespace
	policy := &admissionv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchLabels: map[string]string{corev1.LabelMetadataName: w.namespace}},
		ResourceRules: []admissionv1.NamedRuleWithOperations{{RuleWithOperations: admissionv1.RuleWithOperations{
			Operations: []admissionv1.OperationType{admissionv1.Delete},
			Rule: admissionv1.Rule{
				APIGroups:   []string{clusterv1.GroupVersion.Group},
				APIVersions: []string{"*"},
				Resources:   []string{"machines"},
			},
		}}},
	}
	policy.Spec.Validations = []admissionv1.Validation{{
		Expression: "!has(oldObject.metadata.labels) || !('" + keptLabel + "' in oldObject.metadata.labels)", Message: "these are kept",
	}}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec = admissionv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: name, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
	}
	w.Expect(w.control.Create(w.ctx, policy)).To(Succeed())
	w.Expect(w.control.Create(w.ctx, binding)).To(Succeed())
	allow = func() {
		for _, object := range []client.Object{binding, policy} {
			w.Expect(client.IgnoreNotFound(w.control.Delete(w.ctx, object))).To(Succeed())
		}
	}
	w.t.Cleanup(allow)
	probe := w.machines()[0]
	mark := func(value string) {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"`+keptLabel+`":`+value+`}}}`))
		w.Expect(w.control.Patch(w.ctx, &probe, patch)).To(Succeed())
	}
	mark(`""`)
	w.Eventually(func() error { return w.control.Delete(w.ctx, probe.DeepCopy(), client.DryRunAll) }).
		Should(MatchError(ContainSubstring("these are kept")), "the policy should be in force")
	mark("null")
	return allow
}
