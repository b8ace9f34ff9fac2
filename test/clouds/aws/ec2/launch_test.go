package ec2_test

import (
	"encoding/base64"
	"net/netip"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
)

func TestLaunchWithEverything(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(everything)
	a.clock.Step(pendingDelay)
	i := a.describe(id)
	a.Expect(aws.ToString(i.KeyName)).To(Equal(ec2.DefaultKeyPair))
	a.Expect(aws.ToString(i.IamInstanceProfile.Arn)).To(HaveSuffix("instance-profile/" + ec2.DefaultProfile))
	a.Expect(i.MetadataOptions.HttpTokens).To(Equal(types.HttpTokensStateRequired))
	a.Expect(aws.ToInt32(i.MetadataOptions.HttpPutResponseHopLimit)).To(BeEquivalentTo(1))
	a.Expect(i.InstanceLifecycle).To(Equal(types.InstanceLifecycleTypeSpot))
	a.Expect(aws.ToString(i.SpotInstanceRequestId)).To(HavePrefix("sir-"))
	a.Expect(i.Placement.Tenancy).To(Equal(types.TenancyDedicated))
	a.Expect(i.NetworkInterfaces).To(HaveLen(1))
	a.Expect(aws.ToString(i.PublicIpAddress)).To(HavePrefix("198.18."))
	a.Expect(aws.ToString(i.PublicDnsName)).To(HavePrefix("ec2-198-18-"))
	a.Expect(i.SecurityGroups).To(HaveLen(1))
	a.Expect(i.BlockDeviceMappings).To(HaveLen(2))
	a.Expect(i.Tags).To(ConsistOf(tag("of", "instance")))

	volumes, err := a.client.DescribeVolumes(a.ctx, &sdk.DescribeVolumesInput{})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(volumes.Volumes).To(HaveLen(2))
	root, data := volumes.Volumes[0], volumes.Volumes[1]
	a.Expect(aws.ToInt32(root.Size)).To(BeEquivalentTo(40))
	a.Expect(aws.ToInt32(root.Iops)).To(BeEquivalentTo(4000))
	a.Expect(aws.ToInt32(root.Throughput)).To(BeEquivalentTo(250))
	a.Expect(aws.ToBool(root.Encrypted)).To(BeTrue())
	a.Expect(aws.ToString(root.KmsKeyId)).To(Equal("alias/millwright"))
	a.Expect(root.State).To(Equal(types.VolumeStateInUse))
	a.Expect(aws.ToString(data.Attachments[0].Device)).To(Equal("/dev/sdf"))
	a.Expect(data.VolumeType).To(Equal(types.VolumeTypeGp2))
	a.Expect(data.Tags).To(ConsistOf(tag("of", "volume")))

	interfaces, err := a.client.DescribeNetworkInterfaces(a.ctx, &sdk.DescribeNetworkInterfacesInput{})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(interfaces.NetworkInterfaces).To(HaveLen(1))
	a.Expect(interfaces.NetworkInterfaces[0].TagSet).To(ConsistOf(tag("of", "interface")))
	a.Expect(aws.ToString(interfaces.NetworkInterfaces[0].Attachment.InstanceId)).To(Equal(id))
}

func everything(in *sdk.RunInstancesInput) {
	in.SubnetId, in.SecurityGroupIds = nil, nil
	in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{
		DeviceIndex: aws.Int32(0), SubnetId: aws.String(ec2.DefaultSubnetC), Groups: []string{ec2.DefaultSecurityGroup},
		AssociatePublicIpAddress: aws.Bool(true),
	}}
	in.KeyName = aws.String(ec2.DefaultKeyPair)
	in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String(ec2.DefaultProfile)}
	in.MetadataOptions = &types.InstanceMetadataOptionsRequest{
		HttpTokens: types.HttpTokensStateRequired, HttpPutResponseHopLimit: aws.Int32(1),
	}
	in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{
		MarketType: types.MarketTypeSpot, SpotOptions: &types.SpotMarketOptions{MaxPrice: aws.String("0.05")},
	}
	in.Placement = &types.Placement{Tenancy: types.TenancyDedicated, AvailabilityZone: aws.String("us-east-1c")}
	in.BlockDeviceMappings = []types.BlockDeviceMapping{
		{DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{
			VolumeSize: aws.Int32(40), VolumeType: types.VolumeTypeGp3, Iops: aws.Int32(4000), Throughput: aws.Int32(250),
			Encrypted: aws.Bool(true), KmsKeyId: aws.String("alias/millwright"),
		}},
		{DeviceName: aws.String("/dev/sdf"), Ebs: &types.EbsBlockDevice{VolumeSize: aws.Int32(10)}},
	}
	tagged(types.ResourceTypeInstance, tag("of", "instance"))(in)
	tagged(types.ResourceTypeVolume, tag("of", "volume"))(in)
	tagged(types.ResourceTypeNetworkInterface, tag("of", "interface"))(in)
}

// device is a change of the root volume.
func device(change func(*types.EbsBlockDevice)) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) {
		ebs := &types.EbsBlockDevice{VolumeSize: aws.Int32(20)}
		change(ebs)
		in.BlockDeviceMappings = []types.BlockDeviceMapping{{DeviceName: aws.String("/dev/xvda"), Ebs: ebs}}
	}
}

func TestRefusedLaunches(t *testing.T) {
	userData := func(size int) *string {
		return aws.String(base64.StdEncoding.EncodeToString([]byte(strings.Repeat("x", size))))
	}
	for _, test := range []struct {
		name, code string
		change     func(*sdk.RunInstancesInput)
	}{
		{"image of no good form", "InvalidAMIID.Malformed", func(in *sdk.RunInstancesInput) { in.ImageId = aws.String("debian") }},
		{"image missing", "InvalidAMIID.NotFound", func(in *sdk.RunInstancesInput) { in.ImageId = aws.String("ami-00000000000000bad") }},
		{"unknown type", "InvalidParameterValue", func(in *sdk.RunInstancesInput) { in.InstanceType = "x9.huge" }},
		{"wrong architecture", "InvalidParameterValue", func(in *sdk.RunInstancesInput) { in.InstanceType = "m6g.large" }},
		{"no subnet", "VPCIdNotSpecified", func(in *sdk.RunInstancesInput) { in.SubnetId = nil }},
		{"subnet missing", "InvalidSubnetID.NotFound", func(in *sdk.RunInstancesInput) { in.SubnetId = aws.String("subnet-00000000000000bad") }},
		{"group missing", "InvalidGroup.NotFound", func(in *sdk.RunInstancesInput) { in.SecurityGroupIds = []string{"sg-00000000000000bad"} }},
		{"key pair missing", "InvalidKeyPair.NotFound", func(in *sdk.RunInstancesInput) { in.KeyName = aws.String("nobody") }},
		{"profile missing", "InvalidParameterValue", func(in *sdk.RunInstancesInput) {
			in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String("nobody")}
		}},
		{"zone of another subnet", "InvalidParameterValue", func(in *sdk.RunInstancesInput) {
			in.Placement = &types.Placement{AvailabilityZone: aws.String("us-east-1b")}
		}},
		{"subnet twice", "InvalidParameterCombination", func(in *sdk.RunInstancesInput) {
			in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{DeviceIndex: aws.Int32(0), SubnetId: in.SubnetId}}
		}},
		{"interface without index", "InvalidParameterCombination", func(in *sdk.RunInstancesInput) {
			in.NetworkInterfaces = []types.InstanceNetworkInterfaceSpecification{{SubnetId: in.SubnetId}}
			in.SubnetId, in.SecurityGroupIds = nil, nil
		}},
		{"too much user data", "InvalidParameterValue", func(in *sdk.RunInstancesInput) { in.UserData = userData(16385) }},
		{"user data without base64", "InvalidUserData.Malformed", func(in *sdk.RunInstancesInput) { in.UserData = aws.String("#cloud-config") }},
		{"long token", "InvalidParameterValue", token(strings.Repeat("t", 65))},
		{"spot price too low", "SpotMaxPriceTooLow", func(in *sdk.RunInstancesInput) {
			in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{
				MarketType: types.MarketTypeSpot, SpotOptions: &types.SpotMarketOptions{MaxPrice: aws.String("0.001")},
			}
		}},
		{"reserved tag", "InvalidParameterValue", tagged(types.ResourceTypeInstance, tag("aws:x", "y"))},
		{"untaggable", "InvalidParameterValue", tagged(types.ResourceTypeVpc, tag("x", "y"))},
		{"root too small", "InvalidBlockDeviceMapping", device(func(d *types.EbsBlockDevice) { d.VolumeSize = aws.Int32(4) })},
		{"key without encryption", "InvalidParameterDependency", device(func(d *types.EbsBlockDevice) { d.KmsKeyId = aws.String("k") })},
		{"too many IOPS", "InvalidParameterCombination", device(func(d *types.EbsBlockDevice) { d.Iops = aws.Int32(16000) })},
		{"throughput of gp2", "InvalidParameterCombination", device(func(d *types.EbsBlockDevice) {
			d.VolumeType, d.Throughput = types.VolumeTypeGp2, aws.Int32(125)
		})},
		{"too much throughput", "InvalidParameterValue", device(func(d *types.EbsBlockDevice) { d.Throughput = aws.Int32(1000) })},
		{"io2 without IOPS", "MissingParameter", device(func(d *types.EbsBlockDevice) { d.VolumeType = types.VolumeTypeIo2 })},
		{"not simulated", "UnknownParameter", func(in *sdk.RunInstancesInput) { in.KernelId = aws.String("aki-1") }},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAccount(t, ec2.Options{})
			_, err := a.client.RunInstances(a.ctx, launchInput(test.change))
			a.Expect(err).To(haveCode(test.code))
			a.Expect(a.server.Instances()).To(BeEmpty())
			a.Expect(a.server.NetworkInterfaces()).To(BeEmpty())
		})
	}
	t.Run("just enough user data", func(t *testing.T) {
		a := newAccount(t, ec2.Options{})
		a.launch(func(in *sdk.RunInstancesInput) { in.UserData = userData(16384) })
	})
}

func TestSubnetsRunFull(t *testing.T) {
	catalog := ec2.DefaultCatalog("us-east-1")
	catalog.Subnets[0].CIDR = netip.MustParsePrefix("10.9.0.0/28") // 16 - 5 addresses
	a := newAccount(t, ec2.Options{Catalog: catalog})
	count := func(low, high int32) func(*sdk.RunInstancesInput) {
		return func(in *sdk.RunInstancesInput) { in.MinCount, in.MaxCount = aws.Int32(low), aws.Int32(high) }
	}
	_, err := a.client.RunInstances(a.ctx, launchInput(count(12, 12)))
	a.Expect(err).To(haveCode("InsufficientFreeAddressesInSubnet"))
	a.Expect(a.server.Instances()).To(BeEmpty())
	a.Expect(a.server.Volumes()).To(BeEmpty())

	out, err := a.client.RunInstances(a.ctx, launchInput(count(2, 20)))
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.Instances).To(HaveLen(11), "as many as there is room for")
	_, err = a.client.RunInstances(a.ctx, launchInput())
	a.Expect(err).To(haveCode("InsufficientFreeAddressesInSubnet"))

	a.terminate(aws.ToString(out.Instances[3].InstanceId))
	a.clock.Step(downDelay)
	again := a.describe(a.launch())
	a.Expect(again.PrivateIpAddress).To(Equal(out.Instances[3].PrivateIpAddress))
}

func TestUnusableKeyFailsTheLaunchLater(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(device(func(d *types.EbsBlockDevice) {
		d.Encrypted, d.KmsKeyId = aws.Bool(true), aws.String("alias/gone")
	}))
	a.Expect(a.state(id)).To(Equal(types.InstanceStateNamePending))
	a.clock.Step(pendingDelay)
	i := a.describe(id)
	a.Expect(i.State.Name).To(Equal(types.InstanceStateNameTerminated))
	a.Expect(aws.ToString(i.StateReason.Code)).To(Equal("Client.InternalError"))
	a.Expect(a.server.Volumes()).To(BeEmpty())
}
