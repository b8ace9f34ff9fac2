package bootstrapconfig_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/bootstrapconfig"
	"millwright.dev/contracts/version"
)

func object(status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"kind": "StandInConfig", "status": status}}
}

// TestDataSecretCreated covers BC-002.
func TestDataSecretCreated(t *testing.T) {
	older := map[string]any{"ready": true}
	current := map[string]any{"initialization": map[string]any{"dataSecretCreated": true}}
	tests := []struct {
		name     string
		contract version.Contract
		status   map[string]any
		want     bool
		wantErr  string
	}{
		{"older contract, ready", version.V1Beta1, older, true, ""},
		{"older contract ignores the newer field", version.V1Beta1, current, false, ""},
		{"older contract, wrong type", version.V1Beta1, map[string]any{"ready": int64(1)}, false, "status.ready must be a boolean"},
		{"current contract, created", version.V1Beta2, current, true, ""},
		{"current contract ignores the older field", version.V1Beta2, older, false, ""},
		{"current contract, wrong type", version.V1Beta2, map[string]any{"initialization": []any{}}, false, "status.initialization must be an object"},
		{"nothing reported yet", version.V1Beta2, nil, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := bootstrapconfig.At(test.contract).DataSecretCreated(object(test.status))
			g.Expect(got).To(Equal(test.want))
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

// TestDataSecretName covers BC-003.
func TestDataSecretName(t *testing.T) {
	g := NewWithT(t)
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		got, err := bootstrapconfig.At(contract).DataSecretName(object(map[string]any{"dataSecretName": "data"}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal("data"))
		_, err = bootstrapconfig.At(contract).DataSecretName(object(map[string]any{"dataSecretName": map[string]any{"name": "data"}}))
		g.Expect(err).To(MatchError(ContainSubstring("status.dataSecretName must be a string, not an object")))
	}
}

// TestReady covers BC-004.
func TestReady(t *testing.T) {
	g := NewWithT(t)
	got, err := bootstrapconfig.At(version.V1Beta2).
		Ready(object(map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Unknown"}}}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(string(got.Status)).To(Equal("Unknown"))
	_, err = bootstrapconfig.At(version.V1Beta2).
		Ready(object(map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "Perhaps"}}}))
	g.Expect(err).To(MatchError(ContainSubstring("status.conditions[0].status")))
}

// TestFailure covers BC-005.
func TestFailure(t *testing.T) {
	g := NewWithT(t)
	failed := object(map[string]any{"failureReason": "Broken", "failureMessage": "no template"})
	reason, message, err := bootstrapconfig.At(version.V1Beta1).Failure(failed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect([]string{reason, message}).To(Equal([]string{"Broken", "no template"}))
	reason, _, err = bootstrapconfig.At(version.V1Beta2).Failure(failed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reason).To(BeEmpty())
}

// TestNodeName covers BC-007.
func TestNodeName(t *testing.T) {
	g := NewWithT(t)
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		accessor := bootstrapconfig.At(contract)
		got, err := accessor.NodeName(object(map[string]any{"nodeName": "worker-0"}))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal("worker-0"))
		got, err = accessor.NodeName(object(nil))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(BeEmpty(), "the field is optional")
		_, err = accessor.NodeName(object(map[string]any{"nodeName": int64(1)}))
		g.Expect(err).To(MatchError(ContainSubstring("status.nodeName must be a string")))
	}
}
