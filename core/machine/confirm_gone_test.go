package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// TestAnObjectThatTheCacheDoesNotShowIsLookedForAgain: its event enqueues the Machine, unless the object goes before the cache has shown it.
func TestAnObjectThatTheCacheDoesNotShowIsLookedForAgain(t *testing.T) {
	g := NewWithT(t)
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
	server := fake.NewClientBuilder().WithScheme(scheme).WithObjects(crd, young).Build()
	r := &Reconciler{Client: server, Kinds: &external.Kinds{Informers: external.NewInformers(&version.Resolver{Reader: server}, nil)}}
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
