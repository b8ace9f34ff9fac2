package ec2_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
)

func placed(p types.Placement) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) { in.Placement = &p }
}

func reserved(preference types.CapacityReservationPreference, target *types.CapacityReservationTarget) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) {
		in.CapacityReservationSpecification = &types.CapacityReservationSpecification{
			CapacityReservationPreference: preference, CapacityReservationTarget: target,
		}
	}
}

func reservation(id string) *types.CapacityReservationTarget {
	return &types.CapacityReservationTarget{CapacityReservationId: aws.String(id)}
}

func bought(kind types.MarketType) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: kind}
	}
}

func ofType(t types.InstanceType) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) { in.InstanceType = t }
}

func cpus(o types.CpuOptionsRequest) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) { in.CpuOptions = &o }
}

func TestRefusedPlacements(t *testing.T) {
	elsewhere := func(in *sdk.RunInstancesInput) { in.SubnetId = aws.String(ec2.DefaultSubnetB) }
	metadataTags := func(in *sdk.RunInstancesInput) {
		in.MetadataOptions = &types.InstanceMetadataOptionsRequest{InstanceMetadataTags: types.InstanceMetadataTagsStateEnabled}
	}
	type changes = []func(*sdk.RunInstancesInput)
	for _, test := range []struct {
		name, code string
		changes    changes
	}{
		{"placement group missing", "InvalidPlacementGroup.Unknown", changes{placed(types.Placement{GroupName: aws.String("none")})}},
		{"partition without a group", "InvalidParameterCombination", changes{placed(types.Placement{PartitionNumber: aws.Int32(1)})}},
		{"partition of a cluster group", "InvalidParameterCombination", changes{placed(types.Placement{GroupName: aws.String(ec2.DefaultClusterGroup), PartitionNumber: aws.Int32(1)})}},
		{"partition that the group does not have", "InvalidParameterValue", changes{placed(types.Placement{GroupName: aws.String(ec2.DefaultPartitionGroup), PartitionNumber: aws.Int32(4)})}},
		{"tenancy unknown", "InvalidParameterValue", changes{placed(types.Placement{Tenancy: "shared"})}},
		{"host without its tenancy", "InvalidParameterCombination", changes{placed(types.Placement{HostId: aws.String(ec2.DefaultHost)})}},
		{"host missing", "InvalidHostID.NotFound", changes{placed(types.Placement{Tenancy: types.TenancyHost, HostId: aws.String("h-00000000000000bad")})}},
		{"host of another zone", "InvalidParameterCombination", changes{elsewhere, placed(types.Placement{Tenancy: types.TenancyHost, HostId: aws.String(ec2.DefaultHost)})}},
		{"no host in the zone", "UnavailableHostRequirements", changes{elsewhere, placed(types.Placement{Tenancy: types.TenancyHost})}},
		{"host group missing", "InvalidParameterValue", changes{placed(types.Placement{HostResourceGroupArn: aws.String("arn:aws:x")})}},
		{"spot on a host", "InvalidParameterCombination", changes{bought(types.MarketTypeSpot), placed(types.Placement{Tenancy: types.TenancyHost})}},
		{"reservation malformed", "InvalidCapacityReservationId.Malformed", changes{reserved("", reservation("cr-1"))}},
		{"reservation missing", "InvalidCapacityReservationId.NotFound", changes{reserved("", reservation("cr-00000000000000bad"))}},
		{"reservation of another zone", "InvalidParameterCombination", changes{elsewhere, reserved("", reservation(ec2.DefaultReservation))}},
		{"reservation of another type", "InvalidParameterCombination", changes{ofType("m5.xlarge"), reserved("", reservation(ec2.DefaultReservation))}},
		{"preference against a target", "InvalidParameterCombination", changes{reserved("open", reservation(ec2.DefaultReservation))}},
		{"nothing reserved", "ReservationCapacityExceeded", changes{reserved("capacity-reservations-only", nil)}},
		{"reservation on spot", "InvalidParameterCombination", changes{bought(types.MarketTypeSpot), reserved("", reservation(ec2.DefaultReservation))}},
		{"capacity block without its market", "InvalidParameterCombination", changes{ofType("p5.48xlarge"), reserved("", reservation(ec2.DefaultCapacityBlock))}},
		{"capacity block without an ID", "InvalidParameterCombination", changes{bought(types.MarketTypeCapacityBlock)}},
		{"cores without threads", "InvalidParameterCombination", changes{cpus(types.CpuOptionsRequest{CoreCount: aws.Int32(1)})}},
		{"too many cores", "InvalidParameterValue", changes{cpus(types.CpuOptionsRequest{CoreCount: aws.Int32(2), ThreadsPerCore: aws.Int32(1)})}},
		{"no SEV-SNP", "InvalidParameterCombination", changes{cpus(types.CpuOptionsRequest{AmdSevSnp: types.AmdSevSnpSpecificationEnabled})}},
		{"no nested virtualization", "InvalidParameterCombination", changes{cpus(types.CpuOptionsRequest{NestedVirtualization: types.NestedVirtualizationSpecificationEnabled})}},
		{"snapshot missing", "InvalidSnapshot.NotFound", changes{device(func(d *types.EbsBlockDevice) { d.SnapshotId = aws.String("snap-00000000000000bad") })}},
		{"snapshot malformed", "InvalidSnapshotID.Malformed", changes{device(func(d *types.EbsBlockDevice) { d.SnapshotId = aws.String("snap") })}},
		{"smaller than its snapshot", "InvalidBlockDeviceMapping", changes{device(func(d *types.EbsBlockDevice) {
			d.SnapshotId, d.VolumeSize = aws.String(ec2.DefaultSnapshot), aws.Int32(19)
		})}},
		{"decrypted snapshot", "InvalidBlockDeviceMapping", changes{device(func(d *types.EbsBlockDevice) {
			d.SnapshotId, d.Encrypted = aws.String(ec2.DefaultEncryptedSnapshot), aws.Bool(false)
		})}},
		{"tag that metadata cannot show", "InvalidParameterValue", changes{metadataTags, tagged(types.ResourceTypeInstance, tag("a/b", ""))}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAccount(t, ec2.Options{})
			_, err := a.client.RunInstances(a.ctx, launchInput(test.changes...))
			a.Expect(err).To(haveCode(test.code))
			a.Expect(a.server.Instances()).To(BeEmpty())
		})
	}
}

func TestPlacementIsDescribed(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	i := a.describe(a.launch(
		placed(types.Placement{GroupName: aws.String(ec2.DefaultPartitionGroup), PartitionNumber: aws.Int32(2)}),
		ofType(
			"m6a.large",
		),
		cpus(types.CpuOptionsRequest{CoreCount: aws.Int32(1), ThreadsPerCore: aws.Int32(1), AmdSevSnp: types.AmdSevSnpSpecificationEnabled}),
	))
	a.Expect(aws.ToString(i.Placement.GroupName)).To(Equal(ec2.DefaultPartitionGroup))
	a.Expect(aws.ToInt32(i.Placement.PartitionNumber)).To(BeEquivalentTo(2))
	a.Expect(aws.ToInt32(i.CpuOptions.CoreCount)).To(BeEquivalentTo(1))
	a.Expect(aws.ToInt32(i.CpuOptions.ThreadsPerCore)).To(BeEquivalentTo(1))
	a.Expect(i.CpuOptions.AmdSevSnp).To(BeEquivalentTo("enabled"))
	a.Expect(i.CapacityReservationSpecification.CapacityReservationPreference).To(Equal(types.CapacityReservationPreferenceOpen))

	i = a.describe(a.launch(placed(types.Placement{HostResourceGroupArn: aws.String(ec2.DefaultHostGroup), Affinity: aws.String("host")})))
	a.Expect(i.Placement.Tenancy).To(Equal(types.TenancyHost))
	a.Expect(aws.ToString(i.Placement.HostId)).To(Equal(ec2.DefaultHost), "chosen from the group")
	a.Expect(aws.ToString(i.Placement.HostResourceGroupArn)).To(Equal(ec2.DefaultHostGroup))
	a.Expect(aws.ToString(i.Placement.Affinity)).To(Equal("host"))
}

func TestReservationsRunFull(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	one := a.describe(a.launch(reserved("", reservation(ec2.DefaultReservation))))
	a.Expect(aws.ToString(one.CapacityReservationId)).To(Equal(ec2.DefaultReservation))
	a.Expect(aws.ToString(one.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationId)).
		To(Equal(ec2.DefaultReservation))
	a.Expect(a.describe(a.launch()).CapacityReservationId).To(BeNil(), "it is not an open one")
	group := &types.CapacityReservationTarget{CapacityReservationResourceGroupArn: aws.String(ec2.DefaultReservationGroup)}
	a.Expect(aws.ToString(a.describe(a.launch(reserved("", group))).CapacityReservationId)).To(Equal(ec2.DefaultReservation))

	_, err := a.client.RunInstances(a.ctx, launchInput(reserved("", reservation(ec2.DefaultReservation))))
	a.Expect(err).To(haveCode("ReservationCapacityExceeded"))
	a.Expect(a.describe(a.launch(reserved("", group))).CapacityReservationId).To(BeNil(), "on demand")
	_, err = a.client.RunInstances(a.ctx, launchInput(reserved("capacity-reservations-only", group)))
	a.Expect(err).To(haveCode("ReservationCapacityExceeded"))

	a.terminate(aws.ToString(one.InstanceId))
	a.clock.Step(downDelay)
	a.launch(reserved("", reservation(ec2.DefaultReservation)))
	block := a.describe(
		a.launch(ofType("p5.48xlarge"), bought(types.MarketTypeCapacityBlock), reserved("", reservation(ec2.DefaultCapacityBlock))),
	)
	a.Expect(block.InstanceLifecycle).To(Equal(types.InstanceLifecycleTypeCapacityBlock))
}

func TestVolumesFromSnapshots(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	a.launch(func(in *sdk.RunInstancesInput) {
		in.BlockDeviceMappings = []types.BlockDeviceMapping{
			{DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{SnapshotId: aws.String(ec2.DefaultSnapshot)}},
			{DeviceName: aws.String("/dev/sdf"), Ebs: &types.EbsBlockDevice{SnapshotId: aws.String(ec2.DefaultEncryptedSnapshot)}},
		}
	})
	out, err := a.client.DescribeVolumes(a.ctx, &sdk.DescribeVolumesInput{})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(aws.ToString(out.Volumes[0].SnapshotId)).To(Equal(ec2.DefaultSnapshot))
	a.Expect(aws.ToInt32(out.Volumes[0].Size)).To(BeEquivalentTo(20))
	a.Expect(aws.ToInt32(out.Volumes[1].Size)).To(BeEquivalentTo(10))
	a.Expect(aws.ToBool(out.Volumes[1].Encrypted)).To(BeTrue(), "as its snapshot is")
}

func TestAClusterGroupStaysInItsZone(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	group := placed(types.Placement{GroupName: aws.String(ec2.DefaultClusterGroup)})
	a.launch(group)
	a.launch(group)
	_, err := a.client.RunInstances(
		a.ctx,
		launchInput(group, func(in *sdk.RunInstancesInput) { in.SubnetId = aws.String(ec2.DefaultSubnetB) }),
	)
	a.Expect(err).To(haveCode("InvalidParameterValue"))
}
