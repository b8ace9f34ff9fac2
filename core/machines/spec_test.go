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
	g.Expect(Replicas(nil, map[string]string{clusterv1.AutoscalerMinSizeAnnotation: "many", clusterv1.AutoscalerMaxSizeAnnotation: "9"})).
		To(Equal(1))
}

// TestTemplateErrors: each names the field and what to do; a template that is right has none.
func TestTemplateErrors(t *testing.T) {
	ref := func(kind string) clusterv1.ContractVersionedObjectReference {
		return clusterv1.ContractVersionedObjectReference{APIGroup: "example.com", Kind: kind, Name: "t"}
	}
	for name, test := range map[string]struct {
		spec clusterv1.MachineSpec
		want []string
	}{
		"right": {clusterv1.MachineSpec{
			ClusterName: "c", InfrastructureRef: ref("MachineTemplate"), Bootstrap: clusterv1.Bootstrap{ConfigRef: ref("ConfigTemplate")},
		}, nil},
		"right, with a Secret and no name of the Cluster": {clusterv1.MachineSpec{
			InfrastructureRef: ref("MachineTemplate"), Bootstrap: clusterv1.Bootstrap{DataSecretName: ptr.To("")},
		}, nil},
		"empty": {clusterv1.MachineSpec{}, []string{
			"spec.template.spec.infrastructureRef is empty: name an infrastructure machine template",
			"spec.template.spec.bootstrap is empty: name a bootstrap config template in configRef, or a Secret in dataSecretName",
		}},
		"of another Cluster, and no templates": {clusterv1.MachineSpec{
			ClusterName: "other", InfrastructureRef: ref("Machine"),
			Bootstrap: clusterv1.Bootstrap{ConfigRef: ref("Config"), DataSecretName: ptr.To("s")},
		}, []string{
			`spec.template.spec.clusterName "other" differs from spec.clusterName "c": set it to the same`,
			`spec.template.spec.infrastructureRef.kind: `, `spec.template.spec.bootstrap.configRef.kind: `,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			got := TemplateErrors(&clusterv1.MachineTemplateSpec{Spec: test.spec}, "c")
			g.Expect(got).To(HaveLen(len(test.want)))
			for i, want := range test.want {
				g.Expect(got[i]).To(HavePrefix(want))
			}
		})
	}
}
