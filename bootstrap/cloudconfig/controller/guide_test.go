package controller

import (
	"testing"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/test/doccheck"
)

// The guide says of each stage where to look, and of no other.
func TestTheGuideNamesEachStage(t *testing.T) {
	page := doccheck.Read(t, "docs/guides/nodes-that-never-join.md")
	doccheck.Compare(t, page, "stages", page.Keys(t, "Nodes that never join", "Stage"), []string{
		bootstrapv1.WaitingForProviderIDReason, bootstrapv1.WaitingForMachineReason, bootstrapv1.WaitingForCertificateRequestReason,
		bootstrapv1.CertificateRequestPendingReason, bootstrapv1.CertificateRequestRefusedReason, bootstrapv1.WaitingForCertificateReason,
		bootstrapv1.WaitingForNodeReason, bootstrapv1.NodeNotLinkedReason, bootstrapv1.NodeNameMismatchReason,
	})
	page.CheckLinks(t)
}
