package paused_test

import (
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/paused"
)

func TestBy(t *testing.T) {
	const annotation, spec = "the annotation cluster.x-k8s.io/paused is set", "spec.paused of Cluster c is true"
	cluster := func(paused *bool) *clusterv1.Cluster {
		return &clusterv1.Cluster{ObjectMeta: metav1.ObjectMeta{Name: "c"}, Spec: clusterv1.ClusterSpec{Paused: paused}}
	}
	tests := []struct {
		name        string
		annotations map[string]string
		cluster     *clusterv1.Cluster
		want        []string
		message     string
	}{
		{"neither", map[string]string{"a": "b"}, cluster(nil), nil, ""},
		{"no Cluster", nil, nil, nil, ""},
		{"spec.paused is false", nil, cluster(ptr.To(false)), nil, ""},
		{"the Cluster", nil, cluster(ptr.To(true)), []string{spec}, spec},
		{"the annotation, whatever its value", map[string]string{clusterv1.PausedAnnotation: "false"}, nil, []string{annotation}, annotation},
		{"both", map[string]string{clusterv1.PausedAnnotation: ""}, cluster(ptr.To(true)), []string{spec, annotation}, spec + ", and " + annotation},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			by := paused.By(&metav1.ObjectMeta{Annotations: test.annotations}, test.cluster)
			g.Expect(by).To(Equal(test.want))
			condition := paused.Condition(by)
			g.Expect(condition.Type).To(Equal("Paused"))
			g.Expect(condition.Status == metav1.ConditionTrue).To(Equal(len(test.want) > 0))
			g.Expect(condition.Message).To(Equal(test.message))
		})
	}
}
