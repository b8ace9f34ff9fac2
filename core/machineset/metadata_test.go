package machineset

import (
	"maps"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	machines "millwright.dev/core/machine"
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

// TestRecordsAreNoTemplates: what the core records in a Machine of its Node is neither given nor taken by a template, in place
// or at birth; with a template that says otherwise the two do not write against each other.
func TestRecordsAreNoTemplates(t *testing.T) {
	g := NewWithT(t)
	set := validSet(func(s *clusterv1.MachineSet) {
		s.Spec.Template.Annotations = map[string]string{"note": "one", machines.LabelsOnNodeAnnotation: "forged", machines.TaintsInitializedAnnotation: "forged"}
	})
	m := desiredMachine(set, "m")
	g.Expect(m.Annotations).To(HaveKey("note"))
	g.Expect(m.Annotations).NotTo(Or(HaveKey(machines.LabelsOnNodeAnnotation), HaveKey(machines.TaintsInitializedAnnotation)))

	record := map[string]string{machines.LabelsOnNodeAnnotation: "a", machines.TaintsOnNodeAnnotation: "b:NoSchedule", machines.TaintsInitializedAnnotation: "uid"}
	maps.Copy(m.Annotations, record)
	g.Expect(differs(m, set)).To(BeFalse())
	set.Spec.Template.Annotations = nil
	propagate(m, set)
	for key, value := range record {
		g.Expect(m.Annotations).To(HaveKeyWithValue(key, value))
	}
	g.Expect(m.Annotations).NotTo(HaveKey("note"))
}
