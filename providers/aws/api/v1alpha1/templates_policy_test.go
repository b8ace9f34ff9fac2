package v1alpha1_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/testenv"
)

// installPolicy installs the policy that keeps templates as they are, and waits until the API server has learned of it.
func installPolicy(t *testing.T) *admissionv1.ValidatingAdmissionPolicy {
	t.Helper()
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(testenv.Root(), "config/providers/aws/templates_policy.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	parts := strings.Split(string(text), "\n---\n")
	g.Expect(parts).To(HaveLen(2))
	policy, binding := &admissionv1.ValidatingAdmissionPolicy{}, &admissionv1.ValidatingAdmissionPolicyBinding{}
	g.Expect(yaml.UnmarshalStrict([]byte(parts[0]), policy)).To(Succeed())
	g.Expect(yaml.UnmarshalStrict([]byte(parts[1]), binding)).To(Succeed())
	g.Expect(binding.Spec.PolicyName).To(Equal(policy.Name))
	for _, obj := range []client.Object{policy, binding} {
		g.Expect(c.Create(t.Context(), obj)).To(Succeed())
		t.Cleanup(func() { _ = c.Delete(context.WithoutCancel(t.Context()), obj) })
	}
	obj := template(t, ``)
	g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	g.Eventually(func() error {
		other := larger(obj)
		return c.Update(t.Context(), other, client.DryRunAll)
	}).WithTimeout(time.Minute).WithPolling(100 * time.Millisecond).Should(MatchError(ContainSubstring("AWSMachineTemplate is immutable")))
	return policy
}

// larger is a template of larger machines.
func larger(template *unstructured.Unstructured) *unstructured.Unstructured {
	other := template.DeepCopy()
	_ = unstructured.SetNestedField(other.Object, "m5.xlarge", "spec", "template", "spec", "instanceType")
	return other
}

// asTopology has the annotation that the topology controller sets in its dry runs.
func asTopology(template *unstructured.Unstructured) *unstructured.Unstructured {
	other := template.DeepCopy()
	other.SetAnnotations(map[string]string{clusterv1.TopologyDryRunAnnotation: ""})
	return other
}

// applied is what a server-side apply sends.
func applied(template *unstructured.Unstructured) runtime.ApplyConfiguration {
	other := template.DeepCopy()
	other.SetManagedFields(nil)
	other.SetResourceVersion("")
	return client.ApplyConfigurationFromUnstructured(other)
}

func TestTemplatesDoNotChange(t *testing.T) {
	g := NewWithT(t)
	policy := installPolicy(t)
	g.Expect(policy.Spec.FailurePolicy).To(HaveValue(Equal(admissionv1.Fail)))
	obj := template(t, ``)
	g.Expect(c.Create(t.Context(), obj)).To(Succeed())
	refused := MatchError(ContainSubstring("AWSMachineTemplate is immutable: make a new one and refer to it"))
	topology, dry := client.FieldOwner("capi-topology"), client.DryRunAll

	for name, test := range map[string]struct {
		change func() error
		want   OmegaMatcher
	}{
		"a change":                                  {func() error { return c.Update(t.Context(), larger(obj)) }, refused},
		"a dry run of a change":                     {func() error { return c.Update(t.Context(), larger(obj), dry) }, refused},
		"a change with the annotation":              {func() error { return c.Update(t.Context(), asTopology(larger(obj))) }, refused},
		"a dry run of a change with the annotation": {func() error { return c.Update(t.Context(), asTopology(larger(obj)), dry) }, Succeed()},
		"applied": {func() error { return c.Apply(t.Context(), applied(larger(obj)), topology, client.ForceOwnership) }, refused},
		"applied in a dry run of the topology": {func() error {
			return c.Apply(t.Context(), applied(asTopology(larger(obj))), topology, client.ForceOwnership, dry)
		}, Succeed()},
		"applied with the annotation and no dry run": {func() error {
			return c.Apply(t.Context(), applied(asTopology(larger(obj))), topology, client.ForceOwnership)
		}, refused},
		"an invalid one in a dry run of the topology": {func() error {
			other := asTopology(obj)
			_ = unstructured.SetNestedField(other.Object, "mars", "spec", "template", "spec", "region")
			return c.Update(t.Context(), other, dry)
		}, MatchError(ContainSubstring("spec.template.spec.region"))},
		"no change": {func() error { return c.Update(t.Context(), obj.DeepCopy()) }, Succeed()},
	} {
		g.Expect(test.change()).To(test.want, name)
	}
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	g.Expect(obj.Object["spec"]).To(HaveKeyWithValue("template", HaveKeyWithValue("spec", HaveKeyWithValue("instanceType", "m5.large"))))

	labeled := asTopology(obj) // One that keeps the annotation does not change either.
	labeled.SetLabels(map[string]string{"team": "blue"})
	g.Expect(c.Update(t.Context(), labeled)).To(Succeed(), "labels and annotations are not the spec")
	g.Expect(c.Update(t.Context(), larger(labeled))).To(refused)
	g.Expect(unstructured.SetNestedField(labeled.Object, "4", "status", "capacity", "cpu")).To(Succeed())
	g.Expect(c.Status().Update(t.Context(), labeled)).To(Succeed())
	g.Expect(c.Delete(t.Context(), labeled)).To(Succeed())
}
