package main

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// launchParameters are those of the only launch.
func (f *fixture) launchParameters() map[string]string {
	f.t.Helper()
	var found []simapi.Call
	for _, c := range f.sim.Calls() {
		if c.Action == "RunInstances" {
			found = append(found, c)
		}
	}
	f.Expect(found).To(HaveLen(1))
	return found[0].Parameters
}

// Each group of options makes an instance of the simulated account, which refuses what EC2 refuses.
func TestLaunchOptions(t *testing.T) {
	for name, test := range map[string]struct {
		spec func(*infrav1.AWSMachineSpec)
		want map[string]string
	}{
		"reserved capacity": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.CapacityReservation = &infrav1.CapacityReservation{ID: simulator.DefaultReservation}
			},
			want: map[string]string{"CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId": simulator.DefaultReservation},
		},
		"capacity block": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.InstanceType, s.MarketType = "p5.48xlarge", infrav1.MarketTypeCapacityBlock
				s.CapacityReservation = &infrav1.CapacityReservation{ID: simulator.DefaultCapacityBlock}
			},
			want: map[string]string{"InstanceMarketOptions.MarketType": "capacity-block"},
		},
		"placement group, confidential": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.InstanceType = "m6a.large"
				s.Placement = &infrav1.Placement{GroupName: simulator.DefaultPartitionGroup, Partition: new(int32(3))}
				s.CPUOptions = &infrav1.CPUOptions{AMDSEVSNP: new(true)}
			},
			want: map[string]string{"Placement.GroupName": simulator.DefaultPartitionGroup, "Placement.PartitionNumber": "3",
				"CpuOptions.AmdSevSnp": "enabled"},
		},
		"dedicated host": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.Placement = &infrav1.Placement{Tenancy: infrav1.TenancyHost, HostID: simulator.DefaultHost}
				s.CPUOptions = &infrav1.CPUOptions{CoreCount: new(int32(1)), ThreadsPerCore: new(int32(1))}
			},
			want: map[string]string{"Placement.Tenancy": "host", "Placement.HostId": simulator.DefaultHost, "CpuOptions.CoreCount": "1"},
		},
		"image of a parameter": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.AMI = infrav1.AMIReference{SSMParameter: simulator.DefaultParameter}
				s.RootVolume = &infrav1.Volume{SizeGiB: new(int32(30))}
			},
			want: map[string]string{"ImageId": testImage, "BlockDeviceMapping.1.DeviceName": "/dev/xvda"},
		},
		"security groups that are searched": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.SecurityGroupIDs = nil
				s.SecurityGroupSelectors = []infrav1.SecurityGroupSelector{{Filters: []infrav1.Filter{{Name: "group-name",
					Values: []string{"millwright-*"}}}}}
			},
			want: map[string]string{"NetworkInterface.1.SecurityGroupId.1": testGroup,
				"NetworkInterface.1.SecurityGroupId.2": "sg-0a000000000000002"},
		},
		"fabric adapters": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.InstanceType, s.InterfaceType = "p5.48xlarge", infrav1.InterfaceTypeEFA
				s.ExtraInterfaces = []infrav1.ExtraInterface{
					{InterfaceType: infrav1.InterfaceTypeEFAOnly, NetworkCardIndex: new(int32(1))},
					{Subnet: &infrav1.SubnetReference{Filters: []infrav1.Filter{{Name: "availability-zone", Values: []string{"*"}}}}},
				}
			},
			want: map[string]string{
				"NetworkInterface.1.InterfaceType": "efa", "NetworkInterface.2.InterfaceType": "efa-only",
				"NetworkInterface.2.NetworkCardIndex": "1", "NetworkInterface.2.DeviceIndex": "1", "NetworkInterface.3.SubnetId": subnetA,
			},
		},
		"IPv6": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.IPv6 = &infrav1.IPv6{Count: new(int32(1)), Primary: new(true), PrefixCount: new(int32(1))}
			},
			want: map[string]string{"NetworkInterface.1.Ipv6AddressCount": "1", "NetworkInterface.1.PrimaryIpv6": "true",
				"NetworkInterface.1.Ipv6PrefixCount": "1"},
		},
		"snapshots and a profile by ARN": {
			spec: func(s *infrav1.AWSMachineSpec) {
				s.IAMInstanceProfile = "arn:aws:iam::000000000000:instance-profile/" + simulator.DefaultProfile
				s.RootVolume = &infrav1.Volume{SnapshotID: simulator.DefaultSnapshot}
				s.Volumes = []infrav1.DataVolume{{Device: "/dev/sdf", Volume: infrav1.Volume{SnapshotID: simulator.DefaultEncryptedSnapshot}}}
			},
			want: map[string]string{
				"IamInstanceProfile.Arn":              "arn:aws:iam::000000000000:instance-profile/" + simulator.DefaultProfile,
				"BlockDeviceMapping.1.Ebs.SnapshotId": simulator.DefaultSnapshot,
				"BlockDeviceMapping.2.Ebs.SnapshotId": simulator.DefaultEncryptedSnapshot,
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.start()
			f.machine("m", func(m *infrav1.AWSMachine) { test.spec(&m.Spec) })
			f.becomesReady("m")
			for parameter, value := range test.want {
				f.Expect(f.launchParameters()).To(HaveKeyWithValue(parameter, value))
			}
		})
	}
}

// An account may put tags into the metadata of all its instances, which EC2 refuses for tags like those of the mark.
func TestLaunchInAnAccountThatShowsTagsInMetadata(t *testing.T) {
	f := newFixture(t, simulator.Options{MetadataTagsByDefault: true})
	f.start()
	f.machine("m")
	f.becomesReady("m")
}
