package external_test

import (
	"context"
	"errors"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

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

// TestWhatOwningLacks: each part of it alone, the owner and the label, is added; and what others have set of the reference stays.
func TestWhatOwningLacks(t *testing.T) {
	gvk := clusterv1.GroupVersion.WithKind("Machine")
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "machine"}}
	mine := *metav1.NewControllerRef(machine, gvk)
	own := func(g *WithT, apiReader client.Reader, cluster string, owners ...metav1.OwnerReference) *unstructured.Unstructured {
		obj := object(nil)
		obj.SetOwnerReferences(owners)
		obj.SetLabels(map[string]string{clusterv1.ClusterNameLabel: cluster})
		c := fake.NewClientBuilder().WithObjects(obj).Build()
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), obj)).To(Succeed())
		g.Expect(external.Own(t.Context(), c, apiReader, external.Object{Unstructured: obj}, machine, gvk, "c")).To(Succeed())
		stored := object(nil)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), stored)).To(Succeed())
		g.Expect(stored.GetLabels()).To(Equal(map[string]string{clusterv1.ClusterNameLabel: "c"}))
		return stored
	}
	g := NewWithT(t)
	g.Expect(own(g, serverWith(machine.UID), "c").GetOwnerReferences()).To(Equal([]metav1.OwnerReference{mine}))
	free := mine
	free.BlockOwnerDeletion = nil
	g.Expect(own(g, nil, "another", free).GetOwnerReferences()).To(Equal([]metav1.OwnerReference{free}), "no question, for no owner is added")

	set := *metav1.NewControllerRef(&clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Name: "s", UID: "set"}},
		clusterv1.GroupVersion.WithKind("MachineSet"))
	obj := object(nil)
	obj.SetOwnerReferences([]metav1.OwnerReference{set})
	var elsewhere *external.OwnedElsewhereError
	g.Expect(errors.As(external.Foreign(external.Object{Unstructured: obj}, machine, gvk), &elsewhere)).To(BeTrue(), "no set of its own")
}

// TestLive: a read that fails is no absence, and what is read is of the kind that is asked for.
func TestLive(t *testing.T) {
	g, gvk := NewWithT(t), clusterv1.GroupVersion.WithKind("Machine")
	scheme := runtime.NewScheme()
	g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
	machine := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "machine"}}
	live, err := external.Live(t.Context(), fake.NewClientBuilder().WithScheme(scheme).WithObjects(machine).Build(), machine, gvk)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(live.GetUID()).To(Equal(machine.UID))

	refuses := interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("refused")
		},
	})
	_, err = external.Live(t.Context(), refuses, machine, gvk)
	g.Expect(err).To(MatchError(ContainSubstring("refused")))
	g.Expect(external.MustLive(t.Context(), refuses, machine, gvk)).To(MatchError(ContainSubstring("refused")))
}
