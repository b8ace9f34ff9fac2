package machines

import (
	"fmt"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Claims lets objects of f's namespace claim the instance of another namespace's machine: by its provider ID, by the launch record of its
// object, and by both. None gets it, none terminates it, and each can be deleted; where the foreign instance blocks its deletion, by
// removing the finalizer. make builds a machine in f, live counts the instances in the account.
func (f *Fixture[M]) Claims(victims *Fixture[M], theirs M, make func(name string, change func(M)) M, live func() int) {
	victims.Eventually(victims.Ready(theirs)).Should(HavePrefix("True InstanceRunning"))
	before := live()
	byID := func(m M) { m.CommonSpec().ProviderID = theirs.CommonSpec().ProviderID }
	byRecord := func(m M) { m.SetAnnotations(theirs.GetAnnotations()) }
	for name, change := range map[string]func(M){
		"by-id": byID, "by-record": byRecord, "by-both": func(m M) { byID(m); byRecord(m) },
	} {
		m := make(name, change)
		f.Eventually(f.Ready(m)).ShouldNot(Equal("none"), name)
		if m.CommonSpec().ProviderID == theirs.CommonSpec().ProviderID {
			f.Eventually(f.Ready(m)).Should(HavePrefix("False ForeignInstance"), name)
		}
		f.Expect(f.client.Delete(f.Ctx, m)).To(Succeed())
		f.Eventually(f.Ready(m)).Should(Or(ContainSubstring("not found"), HavePrefix("False DeletionBlocked")), name)
		if err := f.client.Get(f.Ctx, client.ObjectKeyFromObject(m), m); err == nil {
			m.SetFinalizers(nil)
			f.Expect(client.IgnoreNotFound(f.client.Update(f.Ctx, m))).To(Succeed())
		}
		f.Eventually(live).Should(Equal(before), "%s: the foreign one, and nothing of the object", name)
		f.Expect(victims.Ready(theirs)()).To(HavePrefix("True InstanceRunning"), name)
	}
}

// AllWritesRefused has a policy refuse each write of a machine: nothing is launched, an event says why, and once the policy is removed
// the machine runs with one instance.
func (f *Fixture[M]) AllWritesRefused(resource string, make func(name string, change func(M)) M, launches, live func() int) {
	const because = "a policy of the test refuses all writes"
	lift := f.refuse(resource, because)
	probe := make("probe", func(m M) { m.SetAnnotations(map[string]string{clusterv1.PausedAnnotation: ""}) })
	label := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`))
	f.Eventually(func() error { return f.client.Patch(f.Ctx, probe, label, client.DryRunAll) }).Should(MatchError(ContainSubstring(because)))
	m := make("refused", func(M) {})
	f.Eventually(func() []string {
		events, reasons := &corev1.EventList{}, []string{}
		f.Expect(f.client.List(f.Ctx, events, client.InNamespace(f.Namespace))).To(Succeed())
		for i := range events.Items {
			if e := &events.Items[i]; e.InvolvedObject.Name == "refused" {
				reasons = append(reasons, e.Reason+" "+e.Message)
			}
		}
		return reasons
	}).Should(ContainElement(And(HavePrefix("StatusRefused"), ContainSubstring(because))))
	f.Expect(launches()).To(BeZero(), "nothing is launched before the record of it is written")
	lift()
	f.Eventually(func() string {
		// A change enqueues it; without one it is tried again within a minute.
		wake := []byte(fmt.Sprintf(`{"metadata":{"labels":{"generation":%q}}}`, m.GetResourceVersion()))
		_ = f.client.Patch(f.Ctx, m.DeepCopyObject().(M), client.RawPatch(types.MergePatchType, wake))
		return f.Ready(m)()
	}).Should(HavePrefix("True InstanceRunning"))
	f.Expect(live()).To(Equal(1))
	f.Delete(m)
	f.Expect(f.client.Delete(f.Ctx, probe)).To(Succeed())
}

// refuse has all writes of existing objects refused in the namespace, those of their status included, until lift is called.
func (f *Fixture[M]) refuse(resource, because string) (lift func()) {
	policy := &admissionv1.ValidatingAdmissionPolicy{
		ObjectMeta: metav1.ObjectMeta{Name: f.Namespace},
		Spec: admissionv1.ValidatingAdmissionPolicySpec{
			FailurePolicy: ptr.To(admissionv1.Fail),
			MatchConstraints: &admissionv1.MatchResources{ResourceRules: []admissionv1.NamedRuleWithOperations{{
				RuleWithOperations: admissionv1.RuleWithOperations{
					Operations: []admissionv1.OperationType{admissionv1.Update},
					Rule: admissionv1.Rule{
						APIGroups: []string{"*"}, APIVersions: []string{"*"}, Resources: []string{resource, resource + "/status"},
					},
				},
			}}},
			Validations: []admissionv1.Validation{{Expression: "false", Message: because}},
		},
	}
	binding := &admissionv1.ValidatingAdmissionPolicyBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.Namespace},
		Spec: admissionv1.ValidatingAdmissionPolicyBindingSpec{
			PolicyName: f.Namespace, ValidationActions: []admissionv1.ValidationAction{admissionv1.Deny},
			MatchResources: &admissionv1.MatchResources{NamespaceSelector: &metav1.LabelSelector{
				MatchLabels: map[string]string{corev1.LabelMetadataName: f.Namespace},
			}},
		},
	}
	f.Expect(f.client.Create(f.Ctx, policy)).To(Succeed())
	f.Expect(f.client.Create(f.Ctx, binding)).To(Succeed())
	return func() {
		f.Expect(f.client.Delete(f.Ctx, binding)).To(Succeed())
		f.Expect(f.client.Delete(f.Ctx, policy)).To(Succeed())
	}
}
