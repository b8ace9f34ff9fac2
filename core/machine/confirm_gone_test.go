package machine

import (
	"context"
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// TestAnObjectThatTheCacheDoesNotShowIsLookedForAgain: its event enqueues the Machine, unless the object goes before the cache has shown
// it.
func TestAnObjectThatTheCacheDoesNotShowIsLookedForAgain(t *testing.T) {
	g := NewWithT(t)
	server, young := ofInfra(g)
	r := &Reconciler{
		Client: server, Kinds: &external.Kinds{Informers: external.NewInformers(&version.Resolver{Reader: server}, nil, server, nil)},
	}
	s := leavingScope()
	s.Original.Status, s.Object.Status = clusterv1.MachineStatus{}, clusterv1.MachineStatus{}
	s.infrastructure.ref = clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "Infra", Name: "m"}
	s.infrastructure.object, s.infrastructure.err = external.Object{}, apierrors.NewNotFound(schema.GroupResource{}, "m")

	end := r.deleteInfrastructure(t.Context(), s)
	g.Expect(end.Finished()).To(BeFalse())
	g.Expect(end.After()).To(Equal(youngRetry))
	g.Expect(server.Delete(t.Context(), young)).To(Succeed())
	g.Expect(r.deleteInfrastructure(t.Context(), s).Finished()).To(BeTrue())
}

// TestAVersionThatIsNotServedSaysNothingOfItsObjects: that there is no such path is no proof that there is no such object, whether it is
// to be deleted or only looked for.
func TestAVersionThatIsNotServedSaysNothingOfItsObjects(t *testing.T) {
	notServed := apierrors.NewGenericServerResponse(http.StatusNotFound, "get", schema.GroupResource{}, "m", "404 page not found", 0, true)
	for name, cached := range map[string]bool{"deleted": true, "looked for": false} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			server, object := ofInfra(g)
			refuses := interceptor.NewClient(server, interceptor.Funcs{
				Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, obj client.Object, o ...client.GetOption) error {
					if key.Name == "m" {
						return notServed
					}
					return c.Get(ctx, key, obj, o...)
				},
				Delete: func(context.Context, client.WithWatch, client.Object, ...client.DeleteOption) error { return notServed },
			})
			r := &Reconciler{
				Client: refuses, Kinds: &external.Kinds{Informers: external.NewInformers(&version.Resolver{Reader: refuses}, nil, refuses, nil)},
			}
			s := leavingScope()
			s.Original.Status, s.Object.Status = clusterv1.MachineStatus{}, clusterv1.MachineStatus{}
			s.infrastructure.ref = clusterv1.ContractVersionedObjectReference{APIGroup: "g", Kind: "Infra", Name: "m"}
			s.infrastructure.object, s.infrastructure.err = external.Object{}, apierrors.NewNotFound(schema.GroupResource{}, "m")
			if cached {
				s.infrastructure.object, s.infrastructure.err = external.Object{Unstructured: object, Contract: version.V1Beta2}, nil
			}
			end := r.deleteInfrastructure(t.Context(), s)
			g.Expect(end.Finished()).To(BeFalse())
			g.Expect(end.Err()).To(MatchError(ContainSubstring("Infra m")))
		})
	}
}

// ofInfra is an API server with an infrastructure object of Machine m, and its kind.
func ofInfra(g Gomega) (client.WithWatch, *unstructured.Unstructured) {
	scheme := runtime.NewScheme()
	g.Expect(metav1.AddMetaToScheme(scheme)).To(Succeed())
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	crd.Name, crd.Labels = "infras.g", map[string]string{version.Label(version.V1Beta2): "v1"}
	young := &unstructured.Unstructured{}
	young.SetAPIVersion("g/v1")
	young.SetKind("Infra")
	young.SetNamespace("ns")
	young.SetName("m")
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd, young).Build(), young
}
