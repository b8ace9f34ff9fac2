package v1alpha1_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver/inframachine"
)

const removedField = `{userDataStorage: {type: SecretsManager}}`

// A client that validates strictly, as kubectl and server-side apply do, gets an error for a field that was removed, and for one of another
// provider: neither is dropped without a word.
func TestAWSMachine_UnknownField_IsRefused(t *testing.T) {
	g := NewWithT(t)
	for field, change := range map[string]string{
		"userDataStorage": removedField, "cloudInit": `{cloudInit: {secureSecretsBackend: secrets-manager}}`,
	} {
		strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
		g.Expect(strict.Create(t.Context(), machine(t, change))).To(MatchError(ContainSubstring(`unknown field "spec.` + field + `"`)))
		obj := machine(t, change)
		obj.SetGenerateName("")
		obj.SetName("unknown-field")
		applied := client.ApplyConfigurationFromUnstructured(obj)
		g.Expect(c.Apply(t.Context(), applied, client.FieldOwner("test"))).To(MatchError(ContainSubstring("." + field + ": field not declared")))
	}
}

// An AWSMachine that was stored with a field that was removed since is read without it, can be changed, and is deleted.
func TestAWSMachine_StoredWithRemovedField_IsUpdatedAndDeleted(t *testing.T) {
	g := NewWithT(t)
	obj := storeRemovedField(t, g)
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	g.Expect(obj.Object["spec"]).NotTo(HaveKey("userDataStorage"))
	base := obj.DeepCopy()
	obj.SetFinalizers([]string{inframachine.Finalizer})
	obj.SetAnnotations(map[string]string{inframachine.LaunchAnnotation: `{"uid":"u","attempt":1,"userDataRemoved":true}`})
	g.Expect(c.Patch(t.Context(), obj, client.MergeFrom(base))).To(Succeed())
	g.Expect(c.Delete(t.Context(), obj)).To(Succeed())
	g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
	base = obj.DeepCopy()
	obj.SetFinalizers(nil)
	g.Expect(c.Patch(t.Context(), obj, client.MergeFrom(base))).To(Succeed())
	g.Expect(client.IgnoreNotFound(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj))).To(Succeed())
}

// storeRemovedField stores an object by a definition that still has the field, then has the present one again.
func storeRemovedField(t *testing.T, g *WithT) *unstructured.Unstructured {
	t.Helper()
	current, err := definition(t.Context(), "awsmachines")
	g.Expect(err).NotTo(HaveOccurred())
	strict := client.WithFieldValidation(c, metav1.FieldValidationStrict)
	restore := func(ctx context.Context) {
		changeDefinition(ctx, g, "awsmachines", func(def *unstructured.Unstructured) error {
			def.Object["spec"] = current.DeepCopy().Object["spec"]
			return nil
		})
		g.Eventually(func() error { return strict.Create(ctx, machine(t, removedField), client.DryRunAll) }).
			Should(MatchError(ContainSubstring("unknown field")))
	}
	t.Cleanup(func() { restore(context.Background()) })
	changeDefinition(t.Context(), g, "awsmachines", func(def *unstructured.Unstructured) error {
		versions, _, err := unstructured.NestedSlice(def.Object, "spec", "versions")
		if err != nil {
			return err
		}
		field := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
		for _, v := range versions {
			err := unstructured.SetNestedMap(v.(map[string]any), field,
				"schema", "openAPIV3Schema", "properties", "spec", "properties", "userDataStorage")
			if err != nil {
				return err
			}
		}
		return unstructured.SetNestedSlice(def.Object, versions, "spec", "versions")
	})
	obj := machine(t, removedField)
	g.Eventually(func() error { return strict.Create(t.Context(), obj) }).Should(Succeed())
	restore(t.Context())
	return obj
}
