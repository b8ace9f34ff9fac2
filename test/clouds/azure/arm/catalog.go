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
	// Quotas are limits of cores by family; no limit where there is none.
	Quotas map[string]int
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
}

// Size is a size of virtual machines.
type Size struct {
	Name, Family, Architecture string
	CPUs                       int
	MemoryGiB                  float64
	GPUs                       int
	// Zones that have it; all when nil.
	Zones []string
	// Ephemeral is true if its local disk takes an operating system, AcceleratedNetworking if its interfaces are fast.
	Ephemeral, AcceleratedNetworking, Premium bool
}

// DefaultCatalog is a subscription with a resource group for machines, another for the network, and a few sizes.
func DefaultCatalog() *Catalog {
	return &Catalog{
		Location: DefaultLocation,
		Zones:    []string{"1", "2", "3"},
		Groups: []Group{
			{Subscription: DefaultSubscription, Name: DefaultGroup}, {Subscription: DefaultSubscription, Name: "Network"},
			{Subscription: DefaultSubscription, Name: "Images"},
		},
		Subnets: []Subnet{{ID: DefaultSubnet, Prefix: "10.1", IPv6: "fd00:1:"}},
		Images: []Image{
			{ID: DefaultImage, SizeGiB: 30}, {ID: "Canonical:ubuntu-26_04-lts:server:latest", SizeGiB: 30},
			{ID: "kinvolk:flatcar-container-linux:stable:latest", SizeGiB: 30, Plan: true},
			{ID: "/communityGalleries/millwright-0001/images/node/versions/1.36.3", SizeGiB: 30},
			{ID: "/sharedGalleries/millwright-0002/images/node/versions/1.36.3", SizeGiB: 30},
		},
		Sizes: []Size{
			{Name: "Standard_D2s_v5", Family: "standardDSv5Family", Architecture: "x64", CPUs: 2, MemoryGiB: 8, AcceleratedNetworking: true,
				Premium: true},
			{Name: "Standard_D4ds_v5", Family: "standardDDSv5Family", Architecture: "x64", CPUs: 4, MemoryGiB: 16, Ephemeral: true,
				AcceleratedNetworking: true, Premium: true},
			{Name: "Standard_E2s_v5", Family: "standardESv5Family", Architecture: "x64", CPUs: 2, MemoryGiB: 16, AcceleratedNetworking: true,
				Premium: true},
			{Name: "Standard_D2pds_v5", Family: "standardDPDSv5Family", Architecture: "Arm64", CPUs: 2, MemoryGiB: 8, Ephemeral: true,
				AcceleratedNetworking: true, Premium: true, Zones: []string{"1", "2"}},
			{Name: "Standard_NC4as_T4_v3", Family: "Standard NCASv3_T4 Family", Architecture: "x64", CPUs: 4, MemoryGiB: 28, GPUs: 1,
				AcceleratedNetworking: true, Premium: true, Zones: []string{"3"}},
			{Name: "Standard_D4s_v5", Family: "standardDSv5Family", Architecture: "x64", CPUs: 4, MemoryGiB: 16, AcceleratedNetworking: true,
				Premium: true},
			{Name: "Standard_D8s_v5", Family: "standardDSv5Family", Architecture: "x64", CPUs: 8, MemoryGiB: 32, AcceleratedNetworking: true,
				Premium: true},
			{Name: "Standard_D4as_v5", Family: "standardDASv5Family", Architecture: "x64", CPUs: 4, MemoryGiB: 16, AcceleratedNetworking: true,
				Premium: true},
			{Name: "Standard_A2_v2", Family: "standardAv2Family", Architecture: "x64", CPUs: 2, MemoryGiB: 4},
		},
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
