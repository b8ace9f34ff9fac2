package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
)

// TestSpecs_Skyplane755_SizeAndSecurityTypeThatDoNotFit_AreRefused: sizes for confidential machines take no other type, and others do not
// take that.
func TestSpecs_Skyplane755_SizeAndSecurityTypeThatDoNotFit_AreRefused(t *testing.T) {
	const needsType, needsSize = "securityProfile.type to ConfidentialVM", "choose such sizes, or another"
	sizes := func(kind, size string, fallback ...string) infrav1.AzureMachineSpec {
		s := fullSpec()
		s.VMSize, s.FallbackVMSizes = size, fallback
		if s.SecurityProfile.Type = kind; kind == "" {
			s.SecurityProfile = nil
		}
		return s
	}
	for _, row := range []struct {
		spec    infrav1.AzureMachineSpec
		message string
	}{
		{sizes("TrustedLaunch", "Standard_DC2as_v5"), needsType},
		{sizes("TrustedLaunch", "standard_dc4eds_v5"), needsType},
		{sizes("", "Standard_EC4as_v5"), needsType},
		{sizes("", "Standard DC2as v5 (2 vcpus, 8 GiB memory)"), needsType},
		{sizes("", "Standard_D2s_v5", "EC96iads v6"), needsType},
		{sizes("", "Standard_NCC40ads_H100_v5"), needsType},
		{sizes("ConfidentialVM", "Standard_D2s_v5"), needsSize},
		{sizes("ConfidentialVM", "Standard_DC2as_v5", "Standard_DC2s_v3"), needsSize},
	} {
		NewWithT(t).Expect(c.Create(t.Context(), unowned(row.spec), client.DryRunAll)).To(MatchError(ContainSubstring(row.message)),
			row.spec.VMSize)
	}
	for _, spec := range []infrav1.AzureMachineSpec{
		sizes("ConfidentialVM", "DC2as_v5", "Standard_EC4es_v6"), sizes("ConfidentialVM", "Standard_DC2ads_v5", "Standard_NCC40ads_H100_v5"),
		sizes("TrustedLaunch", "Standard_DC2s_v3", "Standard_DC4as_cc_v5"), sizes("", "Standard_D2as_v5"),
	} {
		NewWithT(t).Expect(c.Create(t.Context(), unowned(spec), client.DryRunAll)).To(Succeed(), spec.VMSize)
	}
}
