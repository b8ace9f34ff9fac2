package controlplane_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/controlplane"
	"millwright.dev/contracts/version"
)

// TestAccessors covers CP-001 to CP-004.
func TestAccessors(t *testing.T) {
	g := NewWithT(t)
	obj := &unstructured.Unstructured{Object: map[string]any{
		"spec": map[string]any{"controlPlaneEndpoint": map[string]any{"host": "api", "port": int64(443)}},
		"status": map[string]any{
			"initialized": true, "externalManagedControlPlane": true,
			"conditions": []any{map[string]any{"type": "Ready", "status": "True"}},
		},
	}}
	older, err := controlplane.At(version.V1Beta1).Initialized(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(older).To(BeTrue())
	current, err := controlplane.At(version.V1Beta2).Initialized(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(current).To(BeFalse())
	endpoint, err := controlplane.At(version.V1Beta2).ControlPlaneEndpoint(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(endpoint.String()).To(Equal("api:443"))
	external, err := controlplane.At(version.V1Beta2).ExternallyManaged(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(external).To(BeTrue())
	available, err := controlplane.At(version.V1Beta2).Available(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(available.Type).To(Equal("Ready"), "Ready stands in for Available")

	obj.Object["status"] = map[string]any{"initialized": "yes", "conditions": []any{map[string]any{"type": "Available", "status": "False"}}}
	_, err = controlplane.At(version.V1Beta1).Initialized(obj)
	g.Expect(err).To(MatchError(ContainSubstring("status.initialized must be a boolean")))
	available, err = controlplane.At(version.V1Beta2).Available(obj)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(available.Type).To(Equal("Available"))
}
