package machines

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
)

func TestOutdatedBecause(t *testing.T) {
	base := clusterv1.MachineTemplateSpec{Spec: clusterv1.MachineSpec{
		InfrastructureRef: clusterv1.ContractVersionedObjectReference{APIGroup: "i", Kind: "XTemplate", Name: "t"},
		Bootstrap:         clusterv1.Bootstrap{DataSecretName: ptr.To("data")},
	}}
	tests := map[string]struct {
		change func(*clusterv1.MachineTemplateSpec)
		want   string
	}{
		"the same":    {func(*clusterv1.MachineTemplateSpec) {}, ""},
		"labels":      {func(m *clusterv1.MachineTemplateSpec) { m.Labels = map[string]string{"x": "y"} }, ""},
		"annotations": {func(m *clusterv1.MachineTemplateSpec) { m.Annotations = map[string]string{"x": "y"} }, ""},
		"timeouts":    {func(m *clusterv1.MachineTemplateSpec) { m.Spec.Deletion.NodeDrainTimeoutSeconds = ptr.To[int32](9) }, ""},
		"readiness": {func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.MinReadySeconds = ptr.To[int32](9)
			m.Spec.ReadinessGates = []clusterv1.MachineReadinessGate{{ConditionType: "X"}}
		}, ""},
		"taints":         {func(m *clusterv1.MachineTemplateSpec) { m.Spec.Taints = []clusterv1.MachineTaint{{Key: "k"}} }, ""},
		"version":        {func(m *clusterv1.MachineTemplateSpec) { m.Spec.Version = "v2" }, "version (none), v2 required"},
		"infrastructure": {func(m *clusterv1.MachineTemplateSpec) { m.Spec.InfrastructureRef.Name = "u" }, "XTemplate.i u required"},
		"another group":  {func(m *clusterv1.MachineTemplateSpec) { m.Spec.InfrastructureRef.APIGroup = "j" }, "XTemplate.j t required"},
		"failure domain": {func(m *clusterv1.MachineTemplateSpec) { m.Spec.FailureDomain = "z" }, "failure domain (none), z required"},
		"data Secret":    {func(m *clusterv1.MachineTemplateSpec) { m.Spec.Bootstrap.DataSecretName = ptr.To("other") }, "bootstrap data Secret data, other required"},
		"bootstrap config": {func(m *clusterv1.MachineTemplateSpec) {
			m.Spec.Bootstrap.ConfigRef.Name, m.Spec.Bootstrap.ConfigRef.Kind = "n", "K"
		}, "bootstrap config template"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			wanted := base.DeepCopy()
			test.change(wanted)
			got := strings.Join(OutdatedBecause(wanted, &base), ", ")
			if test.want == "" {
				g.Expect(got).To(BeEmpty())
			} else {
				g.Expect(got).To(ContainSubstring(test.want))
			}
		})
	}
}
