package infracluster_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/infracluster"
	"millwright.dev/contracts/version"
)

// TestAccessors covers IC-001 to IC-003.
func TestAccessors(t *testing.T) {
	g := NewWithT(t)
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec":   map[string]any{"controlPlaneEndpoint": map[string]any{"host": "api", "port": int64(443)}},
		"status": map[string]any{"ready": true, "conditions": []any{map[string]any{"type": "Ready", "status": "True"}}},
	}}
	older, err := infracluster.At(version.V1Beta1).Provisioned(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(older).To(BeTrue())
	current, err := infracluster.At(version.V1Beta2).Provisioned(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(current).To(BeFalse())
	endpoint, err := infracluster.At(version.V1Beta2).ControlPlaneEndpoint(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(endpoint.String()).To(Equal("api:443"))
	ready, err := infracluster.At(version.V1Beta2).Ready(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(ready.Status)).To(Equal("True"))

	obj.Object["status"] = map[string]any{"initialization": map[string]any{"provisioned": "yes"}}
	_, err = infracluster.At(version.V1Beta2).Provisioned(obj)
	g.Expect(err).To(MatchError(ContainSubstring("status.initialization.provisioned must be a boolean")))
}
