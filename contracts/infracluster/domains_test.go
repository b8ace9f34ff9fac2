package infracluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/infracluster"
	"millwright.dev/contracts/version"
)

func TestFailureDomains(t *testing.T) {
	want := []clusterv1.FailureDomain{
		{Name: "a", ControlPlane: ptr.To(true), Attributes: map[string]string{"rack": "1"}}, {Name: "b", ControlPlane: ptr.To(false)}, {Name: "c"},
	}
	a := map[string]any{"controlPlane": true, "attributes": map[string]any{"rack": "1"}}
	b, c := map[string]any{"controlPlane": false}, map[string]any{}
	named := func(name string, fields map[string]any) map[string]any {
		entry := map[string]any{"name": name}
		for key, value := range fields {
			entry[key] = value
		}
		return entry
	}
	tests := []struct {
		name     string
		contract version.Contract
		domains  any
		want     []clusterv1.FailureDomain
		wantErr  string
	}{
		{"older", version.V1Beta1, map[string]any{"c": c, "a": a, "b": b}, want, ""},
		{"newer", version.V1Beta2, []any{named("b", b), named("a", a), named("c", c), map[string]any{}}, want, ""},
		{"none", version.V1Beta2, nil, nil, ""},
		{"older form under the newer contract", version.V1Beta2, map[string]any{"a": a}, nil, "must be a list"},
		{"no boolean", version.V1Beta1, map[string]any{"a": map[string]any{"controlPlane": "yes"}}, nil, "status.failureDomains.a.controlPlane must be a boolean"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			obj := &unstructured.Unstructured{Object: map[string]any{"kind": "Infra", "status": map[string]any{"failureDomains": test.domains}}}
			got, err := infracluster.At(test.contract).FailureDomains(obj)
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(got).To(Equal(test.want))
		})
	}
}
