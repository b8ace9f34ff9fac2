package ec2

import "net/netip"

// DefaultCatalog is the account that the samples and the tests use: a VPC with a subnet in each of
// three zones, images for both architectures and the common instance types.
func DefaultCatalog(region string) *Catalog {
	subnet := func(id, zone, cidr string) Subnet {
		return Subnet{
			ID: id, VPCID: DefaultVPC, AvailabilityZone: region + zone, AvailabilityZoneID: "sim1-az" + string(zone[0]-'a'+'1'),
			CIDR: netip.MustParsePrefix(cidr), IPv6CIDR: netip.MustParsePrefix("2001:db8:0:" + zone + "::/64"),
			Tags: map[string]string{"Name": "millwright-" + region + zone},
		}
	}
	image := func(id, name, arch, date string) Image {
		return Image{
			ID: id, Name: name, Architecture: arch, State: "available", CreationDate: date,
			RootDeviceName: "/dev/xvda", SnapshotID: "snap-" + id[len("ami-"):], RootSizeGiB: 8, IMDSv2: true,
			BootMode: map[string]string{"x86_64": "uefi-preferred", "arm64": "uefi"}[arch],
		}
	}
	return &Catalog{
		VPCs:        []VPC{{ID: DefaultVPC, CIDR: netip.MustParsePrefix("10.0.0.0/16"), DHCPOptionsID: DefaultDHCPOptions}},
		DHCPOptions: []DHCPOptions{{ID: DefaultDHCPOptions, DomainName: privateDomain(region)}},
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
		VCPUQuotas:       VCPUQuotas{OnDemand: 768, Spot: 768},
		GroupQuotas:      defaultGroupQuotas(),
		VolumeQuotaGiB:   50 << 10,
		KeyPairs:         []string{DefaultKeyPair},
		InstanceProfiles: []string{DefaultProfile},
		KMSKeys: []string{
			"alias/aws/ebs", "alias/millwright", "0a000000-0000-4000-8000-000000000001",
			"arn:aws:kms:" + region + ":000000000000:key/0a000000-0000-4000-8000-000000000001",
		},
		Snapshots: []Snapshot{{ID: DefaultSnapshot, SizeGiB: 20}, {ID: DefaultEncryptedSnapshot, SizeGiB: 10, Encrypted: true}},
		PlacementGroups: []PlacementGroup{
			{ID: "pg-0a000000000000001", Name: DefaultClusterGroup, Strategy: "cluster"},
			{ID: "pg-0a000000000000002", Name: DefaultSpreadGroup, Strategy: "spread"},
			{ID: "pg-0a000000000000003", Name: DefaultPartitionGroup, Strategy: "partition", Partitions: 3},
		},
		CapacityReservations: []CapacityReservation{
			{
				ID: DefaultReservation, InstanceType: "m5.large", AvailabilityZone: region + "a", State: "active", Count: 2,
				ResourceGroupARN: DefaultReservationGroup,
			},
			{
				ID: DefaultCapacityBlock, InstanceType: "p5.48xlarge", AvailabilityZone: region + "a", State: "active", Count: 1,
				CapacityBlock: true,
			},
		},
		Parameters: []Parameter{
			{Name: DefaultParameter, Value: DefaultImage, Version: 7},
			{Name: "millwright-node", Value: DefaultImage, Version: 3, Labels: []string{"stable"}},
		},
		Hosts: []Host{{ID: DefaultHost, AvailabilityZone: region + "a", AutoPlacement: true, ResourceGroupARN: DefaultHostGroup}},
	}
}
