package machines

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
)

// TestAClusterOfThePastOwnsNoSet: the cache still has a Cluster that is gone, or that was recreated. The garbage collector
// would delete whatever it owned.
func TestAClusterOfThePastOwnsNoSet(t *testing.T) {
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
			cluster := &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: "now"}}
			set := &clusterv1.MachineSet{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "s", Labels: map[string]string{clusterv1.ClusterNameLabel: "c"}}}
			api := fake.NewClientBuilder().WithScheme(scheme).WithObjects(set)
			if test.live != "" {
				api.WithObjects(&clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Namespace: "n", Name: "c", UID: test.live}})
			}
			owners, end := OwnedByCluster(t.Context(), api.Build(), set.OwnerReferences, cluster)
			if !test.owns {
				g.Expect(end.Err()).NotTo(HaveOccurred())
				g.Expect(end.Finished()).To(BeFalse())
				g.Expect(end.After()).To(BeNumerically(">", 0), "no event need come")
				return
			}
			g.Expect(end.Finished()).To(BeTrue())
			g.Expect(owners).To(ConsistOf(ClusterReference(cluster)))
			_, end = OwnedByCluster(t.Context(), nil, owners, cluster)
			g.Expect(end.Finished()).To(BeTrue(), "what is owned already costs no request")
		})
	}
}
