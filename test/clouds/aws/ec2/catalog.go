package ec2

import "net/netip"

// IDs of the default catalog that tests and samples name.
const (
	DefaultVPC           = "vpc-0a0a0a0a0a0a0a0a0"
	DefaultSubnetA       = "subnet-0a000000000000001"
	DefaultSubnetB       = "subnet-0a000000000000002"
	DefaultSubnetC       = "subnet-0a000000000000003"
	DefaultSecurityGroup = "sg-0a000000000000001"
	DefaultImage         = "ami-0a000000000000001"
	DefaultOlderImage    = "ami-0a000000000000002"
	DefaultARMImage      = "ami-0a000000000000003"
	DefaultKeyPair       = "millwright"
	DefaultProfile       = "millwright-node"
)

// Catalog is what an account has before the first call: the simulator has no actions that make these.
type Catalog struct {
	Subnets        []Subnet
	SecurityGroups []SecurityGroup
	Images         []Image
	InstanceTypes  []InstanceType
	// KeyPairs and InstanceProfiles are names.
	KeyPairs, InstanceProfiles []string
	// KMSKeys are the keys that instances may use, by ARN, key ID or alias. Any other makes a launch
	// fail after the call has succeeded, as in EC2.
	KMSKeys []string
}

// Subnet is one subnet; its addresses are handed out from CIDR without the five that AWS reserves.
type Subnet struct {
	ID, VPCID, AvailabilityZone, AvailabilityZoneID string
	CIDR                                            netip.Prefix
	MapPublicIPOnLaunch                             bool
	Tags                                            map[string]string
}

// SecurityGroup is one security group. A VPC's group named "default" serves launches that name none.
type SecurityGroup struct {
	ID, Name, VPCID string
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
	Tags   map[string]string
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
}

// GPU describes the accelerators of an instance type.
type GPU struct {
	Manufacturer, Name string
	Count, MemoryMiB   int
}

// DefaultCatalog is the account that the samples and the tests use: a VPC with a subnet in each of
// three zones, images for both architectures and the common instance types.
func DefaultCatalog(region string) *Catalog {
	subnet := func(id, zone, cidr string) Subnet {
		return Subnet{
			ID: id, VPCID: DefaultVPC, AvailabilityZone: region + zone, AvailabilityZoneID: "sim1-az" + string(zone[0]-'a'+'1'),
			CIDR: netip.MustParsePrefix(cidr), Tags: map[string]string{"Name": "millwright-" + region + zone},
		}
	}
	image := func(id, name, arch, date string) Image {
		return Image{
			ID: id, Name: name, Architecture: arch, State: "available", CreationDate: date,
			RootDeviceName: "/dev/xvda", SnapshotID: "snap-" + id[len("ami-"):], RootSizeGiB: 8, IMDSv2: true,
		}
	}
	return &Catalog{
		Subnets: []Subnet{
			subnet(DefaultSubnetA, "a", "10.0.0.0/20"),
			subnet(DefaultSubnetB, "b", "10.0.16.0/20"),
			subnet(DefaultSubnetC, "c", "10.0.32.0/20"),
		},
		SecurityGroups: []SecurityGroup{
			{ID: "sg-0a000000000000000", Name: "default", VPCID: DefaultVPC},
			{ID: DefaultSecurityGroup, Name: "millwright-node", VPCID: DefaultVPC},
			{ID: "sg-0a000000000000002", Name: "millwright-extra", VPCID: DefaultVPC},
		},
		Images: []Image{
			image(DefaultImage, "millwright-node-v1.36.3-amd64", "x86_64", "2026-09-01T00:00:00.000Z"),
			image(DefaultOlderImage, "millwright-node-v1.36.2-amd64", "x86_64", "2026-08-01T00:00:00.000Z"),
			image(DefaultARMImage, "millwright-node-v1.36.3-arm64", "arm64", "2026-09-01T00:00:00.000Z"),
		},
		InstanceTypes:    defaultInstanceTypes(),
		KeyPairs:         []string{DefaultKeyPair},
		InstanceProfiles: []string{DefaultProfile},
		KMSKeys: []string{
			"alias/aws/ebs", "alias/millwright", "0a000000-0000-4000-8000-000000000001",
			"arn:aws:kms:" + region + ":000000000000:key/0a000000-0000-4000-8000-000000000001",
		},
	}
}

func defaultInstanceTypes() []InstanceType {
	x86 := func(name string, vcpus, memory, interfaces, addresses int, spot float64) InstanceType {
		return InstanceType{
			Name: name, Architecture: "x86_64", VCPUs: vcpus, MemoryMiB: memory,
			MaxInterfaces: interfaces, AddressesPerInterface: addresses, SpotPrice: spot, Burstable: name[0] == 't',
		}
	}
	arm := x86("m6g.large", 2, 8192, 3, 10, 0.03)
	arm.Architecture = "arm64"
	gpu := x86("g4dn.xlarge", 4, 16384, 3, 10, 0.2)
	gpu.GPU = &GPU{Manufacturer: "NVIDIA", Name: "T4", Count: 1, MemoryMiB: 16384}
	return []InstanceType{
		x86("t3.medium", 2, 4096, 3, 6, 0.02),
		x86("t3.large", 2, 8192, 3, 12, 0.04),
		x86("m5.large", 2, 8192, 3, 10, 0.04),
		x86("m5.xlarge", 4, 16384, 4, 15, 0.08),
		x86("m5.2xlarge", 8, 32768, 4, 15, 0.16),
		x86("c5.large", 2, 4096, 3, 10, 0.04),
		x86("c5.xlarge", 4, 8192, 4, 15, 0.08),
		x86("r5.large", 2, 16384, 3, 10, 0.05),
		arm,
		gpu,
	}
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

func (c *Catalog) instanceType(name string) *InstanceType {
	return find(c.InstanceTypes, func(t *InstanceType) bool { return t.Name == name })
}

func (c *Catalog) securityGroup(id string) *SecurityGroup {
	return find(c.SecurityGroups, func(g *SecurityGroup) bool { return g.ID == id })
}

func (c *Catalog) defaultSecurityGroup(vpc string) *SecurityGroup {
	return find(c.SecurityGroups, func(g *SecurityGroup) bool { return g.VPCID == vpc && g.Name == "default" })
}
