package main

import (
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
)

// TestSpecs_IdentifiersAsToolsPrintThem_AreAccepted: what az, the portal, Terraform and Cluster API's provider have for a field. Reports:
// terraform-azurerm #10296, CAPZ #2533, aad-pod-identity #269.
func TestSpecs_IdentifiersAsToolsPrintThem_AreAccepted(t *testing.T) {
	type S = infrav1.AzureMachineSpec
	lower := func(id *string) {
		*id = "/subscriptions/" + arm.DefaultSubscription + "/resourcegroups/" + strings.SplitN(strings.ToLower(*id), "/resourcegroups/", 2)[1]
	}
	full := func(change func(*S)) S {
		s := fullSpec()
		change(&s)
		return s
	}
	disk := others + "Microsoft.Compute/diskEncryptionSets/d"
	for name, spec := range map[string]S{
		"location":         full(func(s *S) { s.Location = "West Europe" }),
		"regional name":    full(func(s *S) { s.Location = "(Europe) West Europe" }),
		"camel case":       full(func(s *S) { s.Location = "WestEurope" }),
		"display name":     full(func(s *S) { s.Location, s.Zones = "West Europe", []string{"westeurope-1", "WestEurope-2", "3"} }),
		"geography":        full(func(s *S) { s.Location, s.Zones = "(Europe) West Europe", []string{"westeurope-1", "2"} }),
		"number":           full(func(s *S) { s.Location, s.Zones = "(US) East US 2", []string{"eastus2-3"} }),
		"group":            full(func(s *S) { s.ResourceGroup = "/subscriptions/" + s.SubscriptionID + "/resourceGroups/nodes" }),
		"group in case":    full(func(s *S) { s.ResourceGroup = "/SUBSCRIPTIONS/" + s.SubscriptionID + "/resourcegroups/Nodes_1/" }),
		"zones":            full(func(s *S) { s.Zones = []string{"westeurope-1", "WestEurope-2"} }),
		"subscription":     full(func(s *S) { s.SubscriptionID = "/subscriptions/" + strings.ToUpper(s.SubscriptionID) }),
		"size":             full(func(s *S) { s.VMSize = "Standard D4s v5" }),
		"size of portal":   full(func(s *S) { s.VMSize = "Standard D4s v5 (4 vcpus, 16 GiB memory)" }),
		"price of Azure":   full(func(s *S) { s.Spot.MaxPrice = "-1.0" }),
		"size in case":     full(func(s *S) { s.VMSize = "STANDARD_d4S_v5" }),
		"subnet":           full(func(s *S) { lower(&s.SubnetID) }),
		"trailing slash":   full(func(s *S) { s.SubnetID += "/" }),
		"security group":   full(func(s *S) { lower(&s.NetworkSecurityGroupID) }),
		"interface":        full(func(s *S) { lower(&s.ExtraInterfaces[0].SubnetID) }),
		"identity":         full(func(s *S) { lower(&s.UserAssignedIdentities[0]) }),
		"identity of CAPZ": full(func(s *S) { s.UserAssignedIdentities[0] = "azure://" + s.UserAssignedIdentities[0] }),
		"placement":        full(func(s *S) { lower(&s.Placement.ProximityPlacementGroupID) }),
		"encryption set": full(func(s *S) {
			s.OSDisk.DiskEncryptionSetID = disk
			lower(&s.OSDisk.DiskEncryptionSetID)
			s.DataDisks[0].DiskEncryptionSetID = s.OSDisk.DiskEncryptionSetID
		}),
		"gallery":       full(func(s *S) { lower(&s.Image.ID) }),
		"URN":           full(func(s *S) { s.Image.ID = "Canonical:0001-com-ubuntu-server-jammy:22_04-lts-gen2:latest" }),
		"community":     full(func(s *S) { s.Image.ID = "/CommunityGalleries/a-1/Images/b/Versions/latest" }),
		"no version":    full(func(s *S) { s.Image = infrav1.Image{SharedGalleryImageID: "/SharedGalleries/a-1/Images/b"} }),
		"key with line": full(func(s *S) { s.SSHPublicKey += "\n" }),
		"key in base64": full(func(s *S) { s.SSHPublicKey = "c3NoLWVkMjU1MTkgQUFBQQo=" }),
		"price of az":   full(func(s *S) { s.Spot.MaxPrice = "-1" }),
	} {
		NewWithT(t).Expect(c.Create(t.Context(), unowned(spec), client.DryRunAll)).To(Succeed(), name)
	}
	f := newFixture(t)
	m := f.machine("m1", func(s *S) {
		lower(&s.SubnetID)
		lower(&s.Image.ID)
		s.Location, s.Zones, s.VMSize = "West Europe", []string{"westeurope-1", "1"}, "standard_d2S_v5"
		s.ResourceGroup = "/subscriptions/" + s.SubscriptionID + "/resourceGroups/" + strings.ToUpper(s.ResourceGroup)
		s.SubscriptionID = "/subscriptions/" + s.SubscriptionID
	})
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(m.Status.FailureDomain).To(Equal("1"))
	f.Expect(m.Status.InstanceType).To(Equal("Standard_D2s_v5"))
}
