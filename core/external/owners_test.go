package external_test

import (
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/core/external"
)

// TestDeletePreconditions: exactly the object that was read is deleted, and one without finalizers only as it was read.
func TestDeletePreconditions(t *testing.T) {
	g := NewWithT(t)
	obj := object(nil)
	obj.SetUID("u")
	obj.SetResourceVersion("7")
	g.Expect(external.DeletePreconditions(obj)).To(Equal(client.Preconditions{UID: ptr.To[types.UID]("u"), ResourceVersion: ptr.To("7")}))
	obj.SetFinalizers([]string{"f"})
	g.Expect(external.DeletePreconditions(obj)).To(Equal(client.Preconditions{UID: ptr.To[types.UID]("u")}))
}

// TestAnOwnerReferenceThatIsNotRight: one to the owner that does not control the object, or that names a version that may not be served any
// more, is corrected.
func TestAnOwnerReferenceThatIsNotRight(t *testing.T) {
	gvk := clusterv1.GroupVersion.WithKind("Machine")
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "machine"}}
	want := *metav1.NewControllerRef(machine, gvk)
	without, older := want, want
	without.Controller, older.APIVersion = nil, gvk.Group+"/v1alpha3"
	for name, has := range map[string]metav1.OwnerReference{"no controller": without, "an older version": older} {
		t.Run(name, func(t *testing.T) {
			g, obj := NewWithT(t), object(nil)
			obj.SetOwnerReferences([]metav1.OwnerReference{has})
			c := fake.NewClientBuilder().WithObjects(obj).Build()
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
			g.Expect(external.Own(t.Context(), c, serverWith(machine.UID), external.Object{Unstructured: obj}, machine, gvk, "c")).To(Succeed())
			stored := object(nil)
			g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), stored)).To(Succeed())
			g.Expect(stored.GetOwnerReferences()).To(Equal([]metav1.OwnerReference{want}))
		})
	}
}

// TestANamesakeOwner: an object of an earlier owner of the same name is another matter than one of something else.
func TestANamesakeOwner(t *testing.T) {
	gvk := clusterv1.GroupVersion.WithKind("Machine")
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "machine"}}
	earlier := *metav1.NewControllerRef(machine, gvk)
	earlier.UID = "earlier"
	for name, test := range map[string]struct {
		change   func(*metav1.OwnerReference)
		namesake bool
		message  string
	}{
		"the same":      {func(*metav1.OwnerReference) {}, true, "is controlled by an earlier Machine of that name (UID earlier)"},
		"another name":  {func(o *metav1.OwnerReference) { o.Name = "n" }, false, "is controlled by Machine n: refer"},
		"another kind":  {func(o *metav1.OwnerReference) { o.Kind = "Robot" }, false, "is controlled by Robot m: refer"},
		"another group": {func(o *metav1.OwnerReference) { o.APIVersion = "example.com/v1" }, false, "is controlled by Machine m: refer"},
	} {
		t.Run(name, func(t *testing.T) {
			g, obj, owner := NewWithT(t), object(nil), earlier
			test.change(&owner)
			obj.SetOwnerReferences([]metav1.OwnerReference{owner})
			var elsewhere *external.OwnedElsewhereError
			g.Expect(errors.As(external.Foreign(external.Object{Unstructured: obj}, machine, gvk), &elsewhere)).To(BeTrue())
			g.Expect(elsewhere.Namesake).To(Equal(test.namesake))
			g.Expect(elsewhere).To(MatchError(ContainSubstring(test.message)))
		})
	}
}
