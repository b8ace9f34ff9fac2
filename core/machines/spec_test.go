package machines

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestReplicas(t *testing.T) {
	limits := map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "4", clusterv1.AutoscalerMaxSizeAnnotation: "9"}
	g := NewWithT(t)
	g.Expect(Replicas(nil, nil)).To(Equal(1))
	g.Expect(Replicas(ptr.To[int32](0), limits)).To(Equal(0))
	g.Expect(Replicas(nil, limits)).To(Equal(4))
	g.Expect(Replicas(nil, map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "4"})).To(Equal(1), "both annotations are needed")
	g.Expect(Replicas(nil, map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "many", clusterv1.AutoscalerMaxSizeAnnotation: "9"})).To(Equal(1))
}
