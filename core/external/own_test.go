package external_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/core/external"
)

// serverWith is an API server that has an object of that UID under each name; of "" none.
func serverWith(uid types.UID) client.Reader {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(_ context.Context, _ client.WithWatch, key client.ObjectKey, obj client.Object, _ ...client.GetOption) error {
			if uid == "" {
				return apierrors.NewNotFound(schema.GroupResource{}, key.Name)
			}
			obj.SetUID(uid)
			return nil
		},
	})
}

// TestAnOwnerOfThePastOwnsNothing: the cache still has an owner that no longer exists, or that was recreated under its name. The garbage
// collector would delete what it owned.
func TestAnOwnerOfThePastOwnsNothing(t *testing.T) {
	g := NewWithT(t)
	machine := &clusterv1.Machine{
		ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: "n", UID: "past", Finalizers: []string{clusterv1.MachineFinalizer}},
	}
	for _, live := range []types.UID{"", "now"} {
		obj := object(nil)
		c := fake.NewClientBuilder().WithObjects(obj).Build()
		err := external.Own(
			t.Context(),
			c,
			serverWith(live),
			external.Object{Unstructured: obj},
			machine,
			clusterv1.GroupVersion.WithKind("Machine"),
			"c",
		)
		g.Expect(apierrors.IsConflict(err)).To(BeTrue(), "%v", err)
		stored := object(nil)
		g.Expect(c.Get(t.Context(), client.ObjectKeyFromObject(obj), stored)).To(Succeed())
		g.Expect(stored.GetOwnerReferences()).To(BeEmpty())
	}
}
