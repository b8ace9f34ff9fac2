package machine

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestAClusterOfThePastOwnsNoMachine: the cache still has a Cluster that no longer exists, or that was recreated. The garbage
// collector would delete a Machine that it owned, and its instance with it.
func TestAClusterOfThePastOwnsNoMachine(t *testing.T) {
	for name, test := range map[string]struct {
		live types.UID
		owns bool
	}{
		"it exists": {"now", true}, "gone": {"", false}, "recreated": {"another", false},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			scheme := runtime.NewScheme()
			g.Expect(clusterv1.AddToScheme(scheme)).To(Succeed())
			api := fake.NewClientBuilder().WithScheme(scheme)
			if test.live != "" {
				api.WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: test.live}})
			}
			s := &scope{
				cluster: &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "now"}},
				Base:    base{Object: &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "m"}}},
			}
			end := (&Reconciler{APIReader: api.Build()}).adopt(t.Context(), s)
			g.Expect(end.Err()).NotTo(HaveOccurred())
			g.Expect(end.Finished()).To(Equal(test.owns))
			if !test.owns {
				g.Expect(s.Object.OwnerReferences).To(BeEmpty())
				g.Expect(end.After()).To(BeNumerically(">", 0), "no event need come")
				return
			}
			g.Expect(s.Object.OwnerReferences).To(ConsistOf(HaveField("UID", types.UID("now"))))
			g.Expect((&Reconciler{}).adopt(t.Context(), s).Finished()).To(BeTrue(), "what is owned already costs no request")
		})
	}
}
