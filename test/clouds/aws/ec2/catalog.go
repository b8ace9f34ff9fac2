package ec2

import "net/netip"

// IDs of the default catalog that tests and samples name.
const (
	DefaultVPC           = "vpc-0a0a0a0a0a0a0a0a0"
	DefaultDHCPOptions   = "dopt-0a0a0a0a0a0a0a0a0"
	DefaultSubnetA       = "subnet-0a000000000000001"
	DefaultSubnetB       = "subnet-0a000000000000002"
	DefaultSubnetC       = "subnet-0a000000000000003"
	DefaultSecurityGroup = "sg-0a000000000000001"
	DefaultImage         = "ami-0a000000000000001"
	DefaultOlderImage    = "ami-0a000000000000002"
	DefaultARMImage      = "ami-0a000000000000003"
	DefaultKeyPair       = "millwright"
	DefaultProfile       = "millwright-node"
	// DefaultSnapshot has 20 GiB, DefaultEncryptedSnapshot 10.
	DefaultSnapshot          = "snap-0b000000000000001"
	DefaultEncryptedSnapshot = "snap-0b000000000000002"
	// DefaultClusterGroup, DefaultSpreadGroup and DefaultPartitionGroup are placement groups of these strategies.
	DefaultClusterGroup   = "millwright-cluster"
	DefaultSpreadGroup    = "millwright-spread"
	DefaultPartitionGroup = "millwright-partition"
	// DefaultReservation has room for two m5.large in zone a; DefaultCapacityBlock for one p5.48xlarge there.
	DefaultReservation      = "cr-0a000000000000001"
	DefaultCapacityBlock    = "cr-0a000000000000002"
	DefaultReservationGroup = "arn:aws:resource-groups:us-east-1:000000000000:group/millwright-reservations"
	// DefaultParameter holds the ID of DefaultImage, and is labelled stable.
	DefaultParameter = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023/x86_64/standard/recommended/image_id"
	// DefaultHost is in zone a and takes instances that do not name it.
	DefaultHost      = "h-0a000000000000001"
	DefaultHostGroup = "arn:aws:resource-groups:us-east-1:000000000000:group/millwright-hosts"
)

// Catalog is what an account has before the first call: the simulator has no actions that make these.
type Catalog struct {
	VPCs           []VPC
	DHCPOptions    []DHCPOptions
	Subnets        []Subnet
	SecurityGroups []SecurityGroup
	Images         []Image
	InstanceTypes  []InstanceType
	// KeyPairs and InstanceProfiles are names.
	KeyPairs, InstanceProfiles []string
	// KMSKeys are the keys that instances may use, by ARN, key ID or alias. Any other makes a launch
	// fail after the call has succeeded, as in EC2.
	KMSKeys []string
	// Snapshots are those beside the images' own.
	Snapshots            []Snapshot
	PlacementGroups      []PlacementGroup
	CapacityReservations []CapacityReservation
	Hosts                []Host
	// Pools are how many instances have room where, VCPUQuotas how much the account may run.
	Pools      []Pool
	VCPUQuotas VCPUQuotas
	// GroupQuotas are the quotas of the groups of families beside the standard one, by their names in quotaGroup; 0 for no limit.
	GroupQuotas map[string]VCPUQuotas
	// VolumeQuotaGiB is how much there may be of each type of volume; 0 for no limit.
	VolumeQuotaGiB int
	// VolumeShortages are the types of volumes that zones have no room for.
	VolumeShortages []VolumeShortage
	// Parameters are those of Systems Manager.
	Parameters []Parameter
}

// VPC is one VPC.
type VPC struct {
	ID            string
	CIDR          netip.Prefix
	DHCPOptionsID string
	Tags          map[string]string
}

// DHCPOptions is one set of DHCP options, with the resolver of Amazon and a domain name.
type DHCPOptions struct {
	ID, DomainName string
	Tags           map[string]string
}

// Parameter is one parameter of Systems Manager, in one version.
type Parameter struct {
	Name, Value string
	// Secure parameters are returned encrypted.
	Secure  bool
	Version int
	Labels  []string
}

// Snapshot is one EBS snapshot.
type Snapshot struct {
	ID        string
	SizeGiB   int
	Encrypted bool
}

// PlacementGroup is one placement group. Its strategy is cluster, spread or partition.
type PlacementGroup struct {
	ID, Name, Strategy string
	Partitions         int
}

// CapacityReservation is reserved capacity for a number of instances of one type in one zone.
type CapacityReservation struct {
	ID, InstanceType, AvailabilityZone, State string
	Count                                     int
	// Open reservations are used by launches that do not name one.
	Open          bool
	CapacityBlock bool
	// ResourceGroupARN is the group that it is in, if any.
	ResourceGroupARN string
}

// Host is one Dedicated Host; how many instances it has room for is not simulated.
type Host struct {
	ID, AvailabilityZone string
	AutoPlacement        bool
	// ResourceGroupARN is the host resource group that it is in, if any.
	ResourceGroupARN string
}

// Subnet is one subnet; its addresses are handed out from CIDR without the five that AWS reserves.
type Subnet struct {
	ID, VPCID, AvailabilityZone, AvailabilityZoneID string
	CIDR                                            netip.Prefix
	// IPv6CIDR is a /64, not valid for a subnet without IPv6.
	IPv6CIDR            netip.Prefix
	MapPublicIPOnLaunch bool
	Tags                map[string]string
}

// SecurityGroup is one security group. A VPC's group named "default" serves launches that name none.
type SecurityGroup struct {
	ID, Name, VPCID string
	Tags            map[string]string
}

// Image is one AMI with a single snapshot as its root device.
type Image struct {
	ID, Name, Description, Architecture, State string
	// CreationDate is in the form 2026-01-02T15:04:05.000Z.
	CreationDate string
	// OwnerID is the account; empty for the simulated account itself.
	OwnerID        string
	RootDeviceName string
	SnapshotID     string
	// RootSizeGiB is the size of the snapshot: a root volume may not be smaller.
	RootSizeGiB int
	// IMDSv2 makes instances of the image require metadata tokens unless the launch says otherwise.
	IMDSv2 bool
	// NoENA is true for an image without the driver that most types need.
	NoENA bool
	// BootMode is legacy-bios, uefi or uefi-preferred; empty for an image that does not say. TPM needs a type with NitroTPM.
	BootMode string
	TPM      bool
	Tags     map[string]string
}

// InstanceType is one instance type with what a provider reads of it.
type InstanceType struct {
	Name, Architecture string
	VCPUs, MemoryMiB   int
	// MaxInterfaces and AddressesPerInterface are the limits of network interfaces.
	MaxInterfaces, AddressesPerInterface int
	GPU                                  *GPU
	Burstable                            bool
	// SpotPrice is the current price per hour in US dollars, which a MaxPrice must reach.
	SpotPrice float64
	// Zones offer the type; all when empty.
	Zones []string
	// NetworkCards are the cards of its interfaces, 1 when zero; EFA is how many can be Elastic Fabric Adapters.
	NetworkCards, EFA int
	// Hypervisor is nitro, xen or metal.
	Hypervisor string
	// Attachments are how many volumes can be attached; unless Dedicated, interfaces count as well.
	Attachments int
	Dedicated   bool
	// NoENA is true for types without the Elastic Network Adapter, Spot for those that are sold on spot, ClusterGroup for those that
	// cluster placement groups take, TPM for those with NitroTPM, HostOnly for those that run on Dedicated Hosts alone.
	NoENA, Spot, ClusterGroup, TPM, HostOnly bool
	// SEVSNP and NestedVirtualization say which CPU options the type has.
	SEVSNP, NestedVirtualization bool
}

// VolumeShortage is a type of volume that a zone has no room for.
type VolumeShortage struct{ Type, AvailabilityZone string }

// GPU describes the accelerators of an instance type.
type GPU struct {
	Manufacturer, Name string
	Count, MemoryMiB   int
}

func find[T any](list []T, match func(*T) bool) *T {
	for i := range list {
		if match(&list[i]) {
			return &list[i]
		}
	}
	return nil
}

func (c *Catalog) subnet(id string) *Subnet {
	return find(c.Subnets, func(s *Subnet) bool { return s.ID == id })
}

func (c *Catalog) image(id string) *Image {
	return find(c.Images, func(i *Image) bool { return i.ID == id })
}

// snapshot is one of the catalog's own, or an image's.
func (c *Catalog) snapshot(id string) *Snapshot {
	if found := find(c.Snapshots, func(s *Snapshot) bool { return s.ID == id }); found != nil {
		return found
	}
	if image := find(c.Images, func(i *Image) bool { return i.SnapshotID == id }); image != nil {
		return &Snapshot{ID: id, SizeGiB: image.RootSizeGiB}
	}
	return nil
}

func (c *Catalog) instanceType(name string) *InstanceType {
	return find(c.InstanceTypes, func(t *InstanceType) bool { return t.Name == name })
}

func (c *Catalog) securityGroup(id string) *SecurityGroup {
	return find(c.SecurityGroups, func(g *SecurityGroup) bool { return g.ID == id })
}

func (c *Catalog) defaultSecurityGroup(vpc string) *SecurityGroup {
	return find(c.SecurityGroups, func(g *SecurityGroup) bool { return g.VPCID == vpc && g.Name == "default" })
}
