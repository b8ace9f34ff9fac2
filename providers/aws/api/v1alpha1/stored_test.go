package v1alpha1_test

import (
	"context"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

// definition reads the CRD of a kind.
func definition(ctx context.Context, plural string) (*unstructured.Unstructured, error) {
	def := &unstructured.Unstructured{}
	def.SetGroupVersionKind(schema.GroupVersionKind{Group: "apiextensions.k8s.io", Version: "v1", Kind: "CustomResourceDefinition"})
	err := c.Get(ctx, client.ObjectKey{Name: plural + "." + infrav1.GroupVersion.Group}, def)
	return def, err
}

// changeDefinition changes the CRD of a kind.
func changeDefinition(ctx context.Context, g *WithT, plural string, change func(def *unstructured.Unstructured) error) {
	g.Eventually(func() error {
		def, err := definition(ctx, plural)
		if err != nil {
			return err
		}
		if err := change(def); err != nil {
			return err
		}
		return c.Update(ctx, def)
	}).Should(Succeed())
}

// withoutRules takes the rules of CEL from volumes and tags below a path of the schema, as in a definition from before them.
func withoutRules(def *unstructured.Unstructured, spec ...string) error {
	versions, _, err := unstructured.NestedSlice(def.Object, "spec", "versions")
	if err != nil {
		return err
	}
	for _, v := range versions {
		for _, field := range []string{"volumes", "tags"} {
			path := []string{"schema", "openAPIV3Schema"}
			for _, name := range append(slices.Clone(spec), field) {
				path = append(path, "properties", name)
			}
			unstructured.RemoveNestedField(v.(map[string]any), append(path, "x-kubernetes-validations")...)
		}
	}
	return unstructured.SetNestedSlice(def.Object, versions, "spec", "versions")
}

// storeRefused stores an object that the rules refuse, as if it were older than they are.
func storeRefused(
	t *testing.T,
	g *WithT,
	plural string,
	spec []string,
	refused func() *unstructured.Unstructured,
) *unstructured.Unstructured {
	t.Helper()
	g.Expect(c.Create(t.Context(), refused())).To(MatchError(ContainSubstring("same device")))
	current, err := definition(t.Context(), plural)
	g.Expect(err).NotTo(HaveOccurred())
	restore := func(ctx context.Context) {
		changeDefinition(ctx, g, plural, func(def *unstructured.Unstructured) error {
			def.Object["spec"] = current.DeepCopy().Object["spec"]
			return nil
		})
		g.Eventually(func() error { return c.Create(ctx, refused(), client.DryRunAll) }).Should(MatchError(ContainSubstring("same device")))
	}
	t.Cleanup(func() { restore(context.Background()) })
	changeDefinition(t.Context(), g, plural, func(def *unstructured.Unstructured) error { return withoutRules(def, spec...) })
	obj := refused()
	g.Eventually(func() error { return c.Create(t.Context(), obj) }).Should(Succeed())
	restore(t.Context())
	return obj
}

// storedSpec is one that the rules on volumes and tags refuse.
const storedSpec = `{volumes: [{device: /dev/sdf, sizeGiB: 1}, {device: sdf, sizeGiB: 2}], ` +
	`tags: {"kubernetes.io/role/node": "1", "sigs.k8s.io/cluster-api-provider-aws/role": node}}`

// TestStoredObjectsThatARuleWouldRefuseStayUpdatable: an AWSMachine from before a rule must get its finalizer, its launch record,
// its provider ID and its status, and must be released.
func TestStoredObjectsThatARuleWouldRefuseStayUpdatable(t *testing.T) {
	g := NewWithT(t)
	obj := storeRefused(t, g, "awsmachines", []string{"spec"}, func() *unstructured.Unstructured { return machine(t, storedSpec) })

	update := func(what string, write func(*unstructured.Unstructured) error) {
		t.Helper()
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		g.Expect(write(obj)).To(Succeed(), what)
	}
	update("finalizer and launch record", func(o *unstructured.Unstructured) error {
		base := o.DeepCopy()
		o.SetFinalizers([]string{"test.millwright.dev/held"})
		o.SetAnnotations(map[string]string{"infrastructure.millwright.dev/launch": "{}"})
		return c.Patch(t.Context(), o, client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{}))
	})
	update("provider ID", func(o *unstructured.Unstructured) error {
		base := o.DeepCopy()
		if err := unstructured.SetNestedField(o.Object, "aws:///us-east-1a/i-1", "spec", "providerID"); err != nil {
			return err
		}
		return c.Patch(t.Context(), o, client.MergeFrom(base))
	})
	update("status", func(o *unstructured.Unstructured) error {
		base := o.DeepCopy()
		if err := unstructured.SetNestedMap(o.Object, map[string]any{"ready": true, "instanceState": "Running"}, "status"); err != nil {
			return err
		}
		return c.Status().Patch(t.Context(), o, client.MergeFrom(base))
	})
	update("a whole update", func(o *unstructured.Unstructured) error {
		o.SetLabels(map[string]string{"a": "b"})
		return c.Update(t.Context(), o)
	})
	update("deletion", func(o *unstructured.Unstructured) error { return c.Delete(t.Context(), o) })
	update("removal of the finalizer", func(o *unstructured.Unstructured) error {
		base := o.DeepCopy()
		o.SetFinalizers(nil)
		return c.Patch(t.Context(), o, client.MergeFrom(base))
	})
	g.Expect(client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))).To(Succeed())
}

// TestStoredTemplatesThatARuleWouldRefuseStayUpdatable: a template from before a rule gets its owner, its status, and goes.
func TestStoredTemplatesThatARuleWouldRefuseStayUpdatable(t *testing.T) {
	g := NewWithT(t)
	obj := storeRefused(t, g, "awsmachinetemplates", []string{"spec", "template", "spec"}, func() *unstructured.Unstructured {
		return object(
			"AWSMachineTemplate",
			map[string]any{"spec": map[string]any{"template": map[string]any{"spec": machine(t, storedSpec).Object["spec"]}}},
		)
	})
	base := obj.DeepCopy()
	obj.SetLabels(map[string]string{"a": "b"})
	g.Expect(c.Patch(t.Context(), obj, client.MergeFrom(base))).To(Succeed())
	g.Expect(c.Update(t.Context(), obj)).To(Succeed())
	base = obj.DeepCopy()
	g.Expect(unstructured.SetNestedMap(obj.Object, map[string]any{"capacity": map[string]any{"cpu": "2"}}, "status")).To(Succeed())
	g.Expect(c.Status().Patch(t.Context(), obj, client.MergeFrom(base))).To(Succeed())
	g.Expect(c.Delete(t.Context(), obj)).To(Succeed())
}
