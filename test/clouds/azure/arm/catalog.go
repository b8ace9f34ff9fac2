package arm

import (
	"net/http"
	"slices"
	"strings"
)

// What the default catalog has.
const (
	// DefaultSubscription and DefaultGroup are where it all is.
	DefaultSubscription = "00000000-0000-0000-0000-000000000001"
	DefaultGroup        = "Nodes"
	// DefaultLocation is the region.
	DefaultLocation = "westeurope"
	// DefaultSubnet is the ID of a subnet with 1,019 addresses.
	DefaultSubnet = "/subscriptions/" + DefaultSubscription +
		"/resourceGroups/Network/providers/Microsoft.Network/virtualNetworks/nodes/subnets/workers"
	// DefaultImage is the ID of an image of a gallery.
	DefaultImage = "/subscriptions/" + DefaultSubscription +
		"/resourceGroups/Images/providers/Microsoft.Compute/galleries/millwright/images/node/versions/1.36.3"
)

// Further images: for Arm64, for confidential machines, without disk controllers in the definition, managed, and of generation 1.
const (
	inGallery = "/subscriptions/" + DefaultSubscription +
		"/resourceGroups/Images/providers/Microsoft.Compute/galleries/millwright/images/"
	ImageArm64              = inGallery + "node-arm64/versions/1.36.3"
	ImageConfidential       = inGallery + "node-confidential/versions/1.36.3"
	ImageWithoutControllers = inGallery + "node-scsi/versions/1.36.3"
	ManagedImage            = "/subscriptions/" + DefaultSubscription + "/resourceGroups/Images/providers/Microsoft.Compute/images/node"
	ImageGeneration1        = inGallery + "node-gen1/versions/1.36.3"
)

// Names of quotas beside those of families.
const (
	QuotaRegion    = "cores"
	QuotaSpot      = "lowPriorityCores"
	QuotaAddresses = "PublicIPAddresses"
)

// Features that a subscription may have registered.
const (
	FeatureEncryptionAtHost = "EncryptionAtHost"
	FeatureStandardSecurity = "UseStandardSecurityType"
)

// Catalog is what exists at first, and what the platform offers.
type Catalog struct {
	// Location is the one region.
	Location string
	// Zones of the region.
	Zones []string
	// Groups are the resource groups.
	Groups []Group
	// Subnets by their IDs.
	Subnets []Subnet
	// Images that custom references lead to, and marketplace images.
	Images []Image
	// Sizes are the sizes of virtual machines.
	Sizes []Size
	// Others are IDs of resources that can be referred to and have no other effect: security groups, encryption sets, identities.
	Others []string
	// Quotas are limits of cores by family; also QuotaRegion, QuotaSpot and QuotaAddresses. No limit where there is none.
	Quotas map[string]int
	// Features are those that are registered in the subscription, such as FeatureEncryptionAtHost.
	Features []string
}

// Group is a resource group. Lock is empty, CanNotDelete or ReadOnly.
type Group struct{ Subscription, Name, Lock string }

// Subnet is a subnet with a number of addresses, by their first two numbers, and with IPv6 if it has a prefix of that; if Full is
// true, all launches in it are refused.
type Subnet struct {
	ID, Prefix, IPv6 string
	Full             bool
}

// Image is an image: by ID, or as publisher:offer:sku:version of the marketplace.
type Image struct {
	ID string
	// Plan is true if a launch has to name the plan.
	Plan bool
	// SizeGiB is the size of its disk.
	SizeGiB int32
	// Architecture is x64 or Arm64; empty means x64. Generation is V1 or V2; empty means V2.
	Architecture, Generation string
	// SecurityType is TrustedLaunchSupported, TrustedLaunch, ConfidentialVMSupported or ConfidentialVM; empty where the definition has none.
	SecurityType string
	// Controllers are the DiskControllerTypes of the definition; SCSI alone where it has none.
	Controllers []string
}

// DefaultCatalog is a subscription with a resource group for machines, another for the network, and a few sizes.
func DefaultCatalog() *Catalog {
	both := []string{"SCSI", "NVMe"}
	return &Catalog{
		Location: DefaultLocation,
		Zones:    []string{"1", "2", "3"},
		Groups: []Group{
			{Subscription: DefaultSubscription, Name: DefaultGroup}, {Subscription: DefaultSubscription, Name: "Network"},
			{Subscription: DefaultSubscription, Name: "Images"},
		},
		Subnets: []Subnet{{ID: DefaultSubnet, Prefix: "10.1", IPv6: "fd00:1:"}},
		Images: []Image{
			{ID: DefaultImage, SizeGiB: 30, SecurityType: "TrustedLaunchSupported", Controllers: both},
			{ID: ImageArm64, SizeGiB: 30, Architecture: "Arm64", Controllers: both},
			{ID: ImageConfidential, SizeGiB: 30, SecurityType: "ConfidentialVMSupported", Controllers: both},
			{ID: ImageWithoutControllers, SizeGiB: 30},
			{ID: ManagedImage, SizeGiB: 40},
			{ID: ImageGeneration1, SizeGiB: 30, Generation: "V1"},
			{ID: "Canonical:ubuntu-26_04-lts:server:latest", SizeGiB: 30, SecurityType: "TrustedLaunchSupported", Controllers: both},
			{ID: "kinvolk:flatcar-container-linux:stable:latest", SizeGiB: 30, Plan: true, Controllers: both},
			{ID: "/communityGalleries/millwright-0001/images/node/versions/1.36.3", SizeGiB: 30, Controllers: both},
			{ID: "/sharedGalleries/millwright-0002/images/node/versions/1.36.3", SizeGiB: 30, Controllers: both},
		},
		Sizes: defaultSizes(),
	}
}

func (c *Catalog) hasGroup(subscription, name string) bool { return c.group(subscription, name) != nil }

func (c *Catalog) group(subscription, name string) *Group {
	i := slices.IndexFunc(c.Groups, func(g Group) bool {
		return strings.EqualFold(g.Subscription, subscription) && strings.EqualFold(g.Name, name)
	})
	if i < 0 {
		return nil
	}
	return &c.Groups[i]
}

// locked refuses what a lock of the resource group forbids.
func (c *Catalog) locked(in *request) error {
	g := c.group(in.subscription, in.group)
	if g == nil || g.Lock == "" || in.verb() == verbRead || g.Lock == "CanNotDelete" && in.verb() != verbDelete {
		return nil
	}
	return fail(http.StatusConflict, "ScopeLocked", "The scope '%s' cannot perform %s operation because following scope(s) are locked: '%s'. "+
		"Please remove the lock and try again.", in.http.URL.Path, in.verb(), "/subscriptions/"+g.Subscription+"/resourceGroups/"+g.Name)
}

func (c *Catalog) subnet(id string) *Subnet {
	i := slices.IndexFunc(c.Subnets, func(s Subnet) bool { return strings.EqualFold(s.ID, id) })
	if i < 0 {
		return nil
	}
	return &c.Subnets[i]
}

func (c *Catalog) image(id string) *Image {
	i := slices.IndexFunc(c.Images, func(m Image) bool { return strings.EqualFold(m.ID, id) })
	if i < 0 {
		return nil
	}
	return &c.Images[i]
}

func (c *Catalog) size(name string) *Size {
	i := slices.IndexFunc(c.Sizes, func(s Size) bool { return strings.EqualFold(s.Name, name) })
	if i < 0 {
		return nil
	}
	return &c.Sizes[i]
}

func (c *Catalog) has(id string) bool {
	return slices.ContainsFunc(c.Others, func(o string) bool { return strings.EqualFold(o, id) })
}
