package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/core/external"
)

// TestDeletionOfWhatHasGotAFinalizer: an object that had no finalizer when it was read is not deleted by what was read then, since
// the API server may lose a finalizer that comes while it deletes. One that had a finalizer is deleted, though it has changed.
func TestDeletionOfWhatHasGotAFinalizer(t *testing.T) {
	for name, test := range map[string]struct {
		before    []string
		conflicts bool
	}{
		"no finalizer when it was read": {conflicts: true},
		"a finalizer when it was read":  {before: []string{"example.com/first"}},
	} {
		t.Run(name, func(t *testing.T) {
			g, ctx := NewWithT(t), t.Context()
			machine := &clusterv1.Machine{
				ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "m", UID: "m"},
				Spec:       clusterv1.MachineSpec{ProviderID: "a:///b"},
			}
			object := &unstructured.Unstructured{}
			object.SetAPIVersion("example.com/v1")
			object.SetKind("Infra")
			object.SetNamespace("ns")
			object.SetName("m")
			object.SetUID("i")
			object.SetFinalizers(test.before)
			object.SetOwnerReferences(
				[]metav1.OwnerReference{{APIVersion: "cluster.x-k8s.io/v1beta2", Kind: "Machine", Name: "m", UID: "m", Controller: ptr.To(true)}},
			)
			c := fake.NewClientBuilder().WithObjects(object).Build()
			read := object.DeepCopy()
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(object), read)).To(Succeed())

			changed := read.DeepCopy()
			changed.SetFinalizers(append(changed.GetFinalizers(), "example.com/provider"))
			g.Expect(c.Update(ctx, changed)).To(Succeed())

			s := &scope{Base: base{Original: machine, Object: machine.DeepCopy()}}
			r := &Reconciler{Client: c}
			end := r.deleteReferenced(ctx, s, &reference{
				ref:    clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: "Infra", Name: "m"},
				object: external.Object{Unstructured: read}, own: true,
			}, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)

			g.Expect(apierrors.IsConflict(end.Err())).To(Equal(test.conflicts), "%v", end.Err())
			g.Expect(c.Get(ctx, client.ObjectKeyFromObject(object), changed)).To(Succeed())
			g.Expect(changed.GetDeletionTimestamp() == nil).To(Equal(test.conflicts))
		})
	}
}
