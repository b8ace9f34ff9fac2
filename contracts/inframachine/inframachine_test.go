package inframachine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/inframachine"
	"millwright.dev/contracts/version"
)

func object(spec, status map[string]any) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{"kind": "StandInMachine", "spec": spec, "status": status}}
}

// TestProvisioned covers IM-003.
func TestProvisioned(t *testing.T) {
	older := map[string]any{"ready": true}
	current := map[string]any{"initialization": map[string]any{"provisioned": true}}
	tests := []struct {
		name     string
		contract version.Contract
		status   map[string]any
		want     bool
		wantErr  string
	}{
		{"older contract, ready", version.V1Beta1, older, true, ""},
		{"older contract ignores the newer field", version.V1Beta1, current, false, ""},
		{"older contract, wrong type", version.V1Beta1, map[string]any{"ready": "yes"}, false, "status.ready must be a boolean"},
		{"current contract, provisioned", version.V1Beta2, current, true, ""},
		{"current contract ignores the older field", version.V1Beta2, older, false, ""},
		{"current contract, wrong type", version.V1Beta2, map[string]any{"initialization": map[string]any{"provisioned": int64(1)}}, false, "status.initialization.provisioned must be a boolean"},
		{"current contract, parent of the wrong type", version.V1Beta2, map[string]any{"initialization": true}, false, "status.initialization must be an object"},
		{"nothing reported yet", version.V1Beta2, nil, false, ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			got, err := inframachine.At(test.contract).Provisioned(object(nil, test.status))
			g.Expect(got).To(Equal(test.want))
			if test.wantErr != "" {
				g.Expect(err).To(MatchError(ContainSubstring(test.wantErr)))
				return
			}
			g.Expect(err).NotTo(HaveOccurred())
		})
	}
}

// TestProviderID covers IM-002.
func TestProviderID(t *testing.T) {
	g := NewWithT(t)
	for _, contract := range []version.Contract{version.V1Beta1, version.V1Beta2} {
		got, err := inframachine.At(contract).ProviderID(object(map[string]any{"providerID": "stand-in:///a"}, nil))
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(got).To(Equal("stand-in:///a"))
		_, err = inframachine.At(contract).ProviderID(object(map[string]any{"providerID": int64(7)}, nil))
		g.Expect(err).To(MatchError(ContainSubstring("spec.providerID must be a string")))
	}
}

// TestAddresses covers IM-004.
func TestAddresses(t *testing.T) {
	g := NewWithT(t)
	at := inframachine.At(version.V1Beta2)
	got, err := at.Addresses(object(nil, map[string]any{"addresses": []any{
		map[string]any{"type": "InternalIP", "address": "10.0.0.1"},
		map[string]any{"type": "ExternalIP"},
		map[string]any{"type": "InternalDNS", "address": "a.internal"},
	}}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).
		To(Equal(clusterv1.MachineAddresses{{Type: "InternalIP", Address: "10.0.0.1"}, {Type: "InternalDNS", Address: "a.internal"}}))

	_, err = at.Addresses(object(nil, map[string]any{"addresses": []any{map[string]any{"type": "InternalIP", "address": int64(10)}}}))
	g.Expect(err).To(MatchError(ContainSubstring("status.addresses[0].address must be a string")))
	_, err = at.Addresses(object(nil, map[string]any{"addresses": []any{"10.0.0.1"}}))
	g.Expect(err).To(MatchError(ContainSubstring("status.addresses[0] must be an object")))
}

// TestFailureDomain covers IM-005.
func TestFailureDomain(t *testing.T) {
	g := NewWithT(t)
	at := inframachine.At(version.V1Beta2)
	got, err := at.FailureDomain(object(map[string]any{"failureDomain": "a"}, map[string]any{"failureDomain": "b"}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal("b"), "the status is authoritative")
	got, err = at.FailureDomain(object(map[string]any{"failureDomain": "a"}, nil))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(Equal("a"))
	_, err = at.FailureDomain(object(nil, map[string]any{"failureDomain": []any{}}))
	g.Expect(err).To(MatchError(ContainSubstring("status.failureDomain must be a string")))
}

// TestInterruptible covers IM-006.
func TestInterruptible(t *testing.T) {
	g := NewWithT(t)
	got, err := inframachine.At(version.V1Beta2).Interruptible(object(nil, map[string]any{"interruptible": true}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got).To(BeTrue())
	_, err = inframachine.At(version.V1Beta2).Interruptible(object(nil, map[string]any{"interruptible": "spot"}))
	g.Expect(err).To(MatchError(ContainSubstring("status.interruptible must be a boolean")))
}

// TestReady covers IM-007.
func TestReady(t *testing.T) {
	g := NewWithT(t)
	got, err := inframachine.At(version.V1Beta2).
		Ready(object(nil, map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "False", "reason": "Starting"}}}))
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(got.Reason).To(Equal("Starting"))
}

// TestFailure covers IM-008.
func TestFailure(t *testing.T) {
	g := NewWithT(t)
	failed := object(nil, map[string]any{"failureReason": "CreateError", "failureMessage": "no such image"})
	reason, message, err := inframachine.At(version.V1Beta1).Failure(failed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reason).To(Equal("CreateError"))
	g.Expect(message).To(Equal("no such image"))
	reason, message, err = inframachine.At(version.V1Beta2).Failure(failed)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(reason+message).To(BeEmpty(), "the current contract has no such field")
	_, _, err = inframachine.At(version.V1Beta1).Failure(object(nil, map[string]any{"failureReason": int64(3)}))
	g.Expect(err).To(MatchError(ContainSubstring("status.failureReason must be a string")))
}
