package instance

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
)

const aSubscription = "/subscriptions/00000000-0000-0000-0000-000000000001"

// TestCanonical_Terraform10296_IdentifiersAsToolsPrintThem for each kind of identifier: terraform-azurerm #10296, CAPZ #2533 and
// aad-pod-identity #269 report IDs in
// other cases.
func TestCanonical_Terraform10296_IdentifiersAsToolsPrintThem(t *testing.T) {
	subnet := aSubscription + "/resourceGroups/Net/providers/Microsoft.Network/virtualNetworks/nodes/subnets/Subnets"
	identity := aSubscription + "/resourceGroups/rg/providers/Microsoft.ManagedIdentity/userAssignedIdentities/kubelet"
	gallery := aSubscription + "/resourceGroups/RG/providers/Microsoft.Compute/galleries/g/images/Images/versions/1.0.0"
	for _, row := range []struct {
		of    func(string) string
		want  string
		given []string
	}{
		{resourceID, subnet, []string{
			subnet, subnet + "/", "azure://" + subnet,
			aSubscription + "/resourcegroups/Net/providers/microsoft.network/virtualnetworks/nodes/SUBNETS/Subnets",
			"/Subscriptions/00000000-0000-0000-0000-000000000001/RESOURCEGROUPS/Net/PROVIDERS/MICROSOFT.NETWORK/VirtualNetworks/nodes/Subnets/Subnets",
		}},
		{resourceID, identity, []string{
			aSubscription + "/resourcegroups/rg/providers/microsoft.managedidentity/userassignedidentities/kubelet", "azure://" + identity,
		}},
		{resourceID, gallery, []string{
			aSubscription + "/resourcegroups/RG/providers/MICROSOFT.COMPUTE/Galleries/g/Images/Images/Versions/1.0.0/",
		}},
		{locationOf, "westeurope", []string{"westeurope", "West Europe", "WestEurope", "WEST EUROPE", "(Europe) West Europe"}},
		{groupName, "Nodes-1", []string{
			"Nodes-1", aSubscription + "/resourceGroups/Nodes-1", aSubscription + "/resourcegroups/Nodes-1/",
			"/SUBSCRIPTIONS/00000000-0000-0000-0000-000000000001/RESOURCEGROUPS/Nodes-1",
		}},
		{zoneOf, "1", []string{"1", "westeurope-1", "WestEurope-1"}},
		{subscriptionOf, "abcdef00-0000-0000-0000-00000000000a", []string{
			"ABCDEF00-0000-0000-0000-00000000000A", "/subscriptions/ABCDEF00-0000-0000-0000-00000000000a/",
		}},
		{sizeName, "Standard_D4s_v5", []string{"standard_d4s_v5", "STANDARD_D4S_V5", "Standard D4s v5", "D4s_v5", "Standard_D4s_v5"}},
		{sizeName, "Standard_NC4as_T4_v3", []string{"standard_nc4as_t4_v3", "NC4as T4 v3", "Standard NC4as T4 v3 (4 vcpus, 28 GiB memory)"}},
		{sizeName, "Standard_E8-2s_v5", []string{"standard_e8-2s_v5"}},
		{sizeName, "Standard_NV36ads_A10_v5", []string{"standard_nv36ads_a10_v5"}},
		{sizeName, "Standard_NV4ads_V710_v5", []string{"standard_nv4ads_v710_v5"}},
		{sizeName, "Standard_DS2_v2_Promo", []string{"Standard_DS2_v2_Promo"}},
		{sizeName, "Basic_A1", []string{"basic_a1"}},
		{sshKeyOf, "ssh-rsa AAAA me", []string{"ssh-rsa AAAA me", "ssh-rsa AAAA me\n", " ssh-rsa AAAA me\r\n", "c3NoLXJzYSBBQUFBIG1l", "c3NoLXJzYSBBQUFBIG1lCg==\n"}},
	} {
		for _, given := range row.given {
			NewWithT(t).Expect(row.of(given)).To(Equal(row.want), "%q", given)
		}
	}
}

// TestCanonical_ImagesAsAzTakesThem: one field has what az vm create --image takes.
func TestCanonical_ImagesAsAzTakesThem(t *testing.T) {
	community := "/communityGalleries/flatcar-23485951/images/flatcar-stable-amd64/versions/latest"
	for id, want := range map[string]infrav1.Image{
		"Canonical:ubuntu-24_04-lts:server:latest": {
			Marketplace: &infrav1.MarketplaceImage{Publisher: "Canonical", Offer: "ubuntu-24_04-lts", SKU: "server", Version: "latest"},
		},
		community: {CommunityGalleryImageID: community},
		"/CommunityGalleries/flatcar-23485951/Images/flatcar-stable-amd64": {CommunityGalleryImageID: community},
		"/SharedGalleries/a/Images/b/Versions/1.0.0/":                      {SharedGalleryImageID: "/sharedGalleries/a/images/b/versions/1.0.0"},
		aSubscription + "/resourcegroups/rg/providers/microsoft.compute/IMAGES/i/": {
			ID: aSubscription + "/resourceGroups/rg/providers/Microsoft.Compute/images/i",
		},
	} {
		NewWithT(t).Expect(canonicalImage(infrav1.Image{ID: id})).To(Equal(want), id)
	}
	given := infrav1.Image{CommunityGalleryImageID: "/CommunityGalleries/flatcar-23485951/Images/flatcar-stable-amd64/"}
	NewWithT(t).Expect(canonicalImage(given)).To(Equal(infrav1.Image{CommunityGalleryImageID: community}))
}
