package cluster_test

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"
	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestADeniedDeletionIsReportedAndRepeated, also where the webhook answers as the API server does of an object that does not exist, or
// has changed.
func TestADeniedDeletionIsReportedAndRepeated(t *testing.T) {
	t.Parallel()
	kind := coretest.Kind(coretest.InfraCluster, version.V1Beta2)
	for name, test := range map[string]struct {
		denied func(namespace string) client.Object
		code   int32
	}{
		"the infrastructure, as not found":  {func(n string) client.Object { return coretest.Object(kind, n, "probe") }, http.StatusNotFound},
		"the infrastructure, as a conflict": {func(n string) client.Object { return coretest.Object(kind, n, "probe") }, http.StatusConflict},
		"a Machine, as not found": {func(n string) client.Object {
			return standaloneMachine(n, "probe", nil)
		}, http.StatusNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g, namespace := NewWithT(t), core.Namespace(t)
			infra := coretest.Object(kind, namespace, "i")
			machine := standaloneMachine(namespace, "m", nil)
			machine.Finalizers = nil
			c := &clusterv1.Cluster{
				ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "c"},
				Spec:       clusterv1.ClusterSpec{InfrastructureRef: coretest.Ref(kind, "i")},
			}
			for _, object := range []client.Object{infra, c, machine} {
				core.Create(t, object)
			}
			eventually(t, c, func(g Gomega, c *clusterv1.Cluster) { g.Expect(c.Finalizers).NotTo(BeEmpty()) })
			allow := core.Deny(t, test.denied(namespace), admissionv1.Delete, metav1.Status{Message: "no ticket", Code: test.code})
			g.Expect(core.Client.Delete(t.Context(), c)).To(Succeed())
			eventually(t, c, func(g Gomega, c *clusterv1.Cluster) {
				g.Expect(message(c, "Deleting")).To(ContainSubstring(`admission webhook "deny.example.com" denied the request: no ticket`))
			})
			allow()
			g.Eventually(func() error { return core.Client.Get(t.Context(), client.ObjectKeyFromObject(c), c) }).
				Should(MatchError(apierrors.IsNotFound, "gone"))
		})
	}
}
