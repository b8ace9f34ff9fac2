package ec2_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
)

// volumes are so many further volumes.
func volumes(n int) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) {
		for i := range n {
			name := fmt.Sprintf("/dev/sd%c", 'b'+i)
			if i >= 25 {
				name = fmt.Sprintf("/dev/xvdc%c", 'a'+i-25)
			}
			in.BlockDeviceMappings = append(in.BlockDeviceMappings, volume(name, "gp3", 1))
		}
	}
}

func volume(device string, kind types.VolumeType, size int32) types.BlockDeviceMapping {
	return types.BlockDeviceMapping{DeviceName: aws.String(device), Ebs: &types.EbsBlockDevice{VolumeType: kind, VolumeSize: aws.Int32(size)}}
}

func withVolume(device string, kind types.VolumeType, size int32) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) {
		in.BlockDeviceMappings = append(in.BlockDeviceMappings, volume(device, kind, size))
	}
}

func spotTags(in *sdk.RunInstancesInput) {
	in.TagSpecifications = append(in.TagSpecifications, types.TagSpecification{
		ResourceType: types.ResourceTypeSpotInstancesRequest, Tags: []types.Tag{{Key: aws.String("team"), Value: aws.String("blue")}},
	})
}

func groups(n int) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) {
		in.SecurityGroupIds = slices.Repeat([]string{ec2.DefaultSecurityGroup}, n)
	}
}

// TestRunInstances_Documented_Refusals: what EC2's documentation rules out, each beside what it allows. The README has the sources.
func TestRunInstances_Documented_Refusals(t *testing.T) {
	cluster := types.Placement{GroupName: aws.String(ec2.DefaultClusterGroup)}
	spot := bought(types.MarketTypeSpot)
	for name, c := range map[string]struct {
		code             string
		refused, allowed []func(*sdk.RunInstancesInput)
	}{
		"a root volume st1":            {"InvalidParameterValue", with(withVolume("/dev/xvda", "st1", 500)), with(withVolume("/dev/sdf", "st1", 500))},
		"a root volume sc1":            {"InvalidParameterValue", with(withVolume("/dev/xvda", "sc1", 500)), with(withVolume("/dev/sdf", "sc1", 500))},
		"40 volumes":                   {"AttachmentLimitExceeded", with(volumes(40)), with(volumes(26))},
		"27 volumes, root, interface":  {"AttachmentLimitExceeded", with(volumes(27)), with(volumes(26))},
		"a limit of volumes alone":     {"AttachmentLimitExceeded", with(ofType("m7i.large"), volumes(32)), with(ofType("m7i.large"), volumes(31))},
		"a device name":                {"InvalidParameterValue", with(withVolume("/dev/nonsense", "gp3", 1)), with(withVolume("/dev/xvddx", "gp3", 1))},
		"t3 in a cluster group":        {"InvalidParameterCombination", with(ofType("t3.medium"), placed(cluster)), with(ofType("m5.large"), placed(cluster))},
		"six security groups":          {"SecurityGroupsPerInterfaceLimitExceeded", with(groups(6)), with(groups(5))},
		"a type without spot":          {"InvalidParameterCombination", with(ofType("hpc6a.48xlarge"), spot), with(ofType("hpc6a.48xlarge"))},
		"a Mac on shared hardware":     {"UnsupportedTenancy", with(ofType("mac2.metal"), arm), with(ofType("mac2.metal"), arm, placed(types.Placement{Tenancy: types.TenancyHost}))},
		"tags of a spot request":       {"InvalidParameterValue", with(spotTags), with(spot, spotTags)},
		"a value that is no tenancy":   {"InvalidParameterValue", with(placed(types.Placement{Tenancy: "mine"})), with(placed(types.Placement{Tenancy: types.TenancyDedicated}))},
		"a placement group without ID": {"InvalidPlacementGroup.Unknown", with(placed(types.Placement{GroupId: aws.String("pg-0b000000000000001")})), with(placed(types.Placement{GroupId: aws.String("pg-0a000000000000001")}))},
		"x86 image on Arm":             {"InvalidParameterValue", with(ofType("m6g.large")), with(ofType("m6g.large"), arm)},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t, ec2.Options{})
			a.refuses(c.code, c.refused...)
			a.launch(c.allowed...)
		})
	}
}

func with(change ...func(*sdk.RunInstancesInput)) []func(*sdk.RunInstancesInput) { return change }

func arm(in *sdk.RunInstancesInput) { in.ImageId = aws.String(ec2.DefaultARMImage) }

// TestRunInstances_ImageAndType_MustMatch: network driver, boot mode and TPM of an image against what the type has.
func TestRunInstances_ImageAndType_MustMatch(t *testing.T) {
	for name, c := range map[string]struct {
		change           func(*ec2.Image)
		refused, allowed types.InstanceType
	}{
		"without ENA":   {func(i *ec2.Image) { i.NoENA = true }, "m5.large", "m4.large"},
		"UEFI":          {func(i *ec2.Image) { i.BootMode = "uefi" }, "m4.large", "m5.large"},
		"with NitroTPM": {func(i *ec2.Image) { i.TPM = true }, "m4.large", "m5.large"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t, ec2.Options{})
			a.server.ChangeCatalog(func(catalog *ec2.Catalog) { c.change(&catalog.Images[0]) })
			a.refuses("InvalidParameterCombination", ofType(c.refused))
			a.launch(ofType(c.allowed))
		})
	}
	a := newAccount(t, ec2.Options{})
	snp := cpus(types.CpuOptionsRequest{AmdSevSnp: types.AmdSevSnpSpecificationEnabled})
	a.launch(ofType("m6a.large"), snp)
	a.server.ChangeCatalog(func(catalog *ec2.Catalog) { catalog.Images[0].BootMode = "legacy-bios" })
	a.refuses("InvalidParameterCombination", ofType("m6a.large"), snp)
}

// TestQuotas_ByGroupOfFamilies: each group has its own quota, on demand and on spot, by default as well.
func TestQuotas_ByGroupOfFamilies(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	for range 96 {
		a.launch(ofType("m5.2xlarge"))
	}
	a.refuses("VcpuLimitExceeded", ofType("m5.2xlarge"))
	a.refuses("VcpuLimitExceeded", ofType("c5.large"))
	a.launch(ofType("c5.large"), bought(types.MarketTypeSpot))
	a.launch(ofType("g5.48xlarge"))
	a.refuses("VcpuLimitExceeded", ofType("g5.48xlarge"))
	a.launch(ofType("vt1.3xlarge"))
	a.launch(ofType("p3.2xlarge"))
	a.launch(ofType("inf2.xlarge"))
	a.server.ChangeCatalog(func(c *ec2.Catalog) { c.GroupQuotas["p"] = ec2.VCPUQuotas{OnDemand: 8, Spot: 8} })
	a.refuses("VcpuLimitExceeded", ofType("p3.2xlarge"))
	a.launch(ofType("p3.2xlarge"), bought(types.MarketTypeSpot))
	a.refuses("MaxSpotInstanceCountExceeded", ofType("p3.2xlarge"), bought(types.MarketTypeSpot))
}

// TestSpreadGroup_EighthInstanceOfZone_IsRefused: seven instances of a spread group run in one zone.
func TestSpreadGroup_EighthInstanceOfZone_IsRefused(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	spread := placed(types.Placement{GroupName: aws.String(ec2.DefaultSpreadGroup)})
	for range 7 {
		a.launch(spread)
	}
	a.refuses("InsufficientInstanceCapacity", spread)
	a.launch(spread, func(in *sdk.RunInstancesInput) { in.SubnetId = aws.String(ec2.DefaultSubnetB) })
}

// TestVolumes_CapacityAndQuota: a zone without room for a type of volume refuses the launch; a quota shows after it was accepted.
func TestVolumes_CapacityAndQuota(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	a.server.ChangeCatalog(func(c *ec2.Catalog) {
		c.VolumeShortages = []ec2.VolumeShortage{{Type: "io2", AvailabilityZone: "us-east-1a"}}
		c.VolumeQuotaGiB = 100
	})
	io2 := func(in *sdk.RunInstancesInput) {
		v := volume("/dev/sdf", "io2", 10)
		v.Ebs.Iops = aws.Int32(100)
		in.BlockDeviceMappings = append(in.BlockDeviceMappings, v)
	}
	a.refuses("InsufficientVolumeCapacity", io2)
	a.launch(io2, func(in *sdk.RunInstancesInput) { in.SubnetId = aws.String(ec2.DefaultSubnetB) })
	a.launch(withVolume("/dev/sdf", "gp2", 100))
	a.launch(withVolume("/dev/sdf", "gp2", 1))
	a.clock.Step(downDelay)
	last := a.server.Instances()[2]
	a.Expect(last.State).To(Equal("terminated"))
	a.Expect(last.StateReason.Code).To(Equal("Client.VolumeLimitExceeded"))
}

// TestInstanceTypes_AreReal: the table has at least 40 types, which the API's definition knows, of each group of quotas.
func TestInstanceTypes_AreReal(t *testing.T) {
	g := NewWithT(t)
	all := ec2.DefaultCatalog("us-east-1").InstanceTypes
	g.Expect(len(all)).To(BeNumerically(">=", 40))
	known := types.InstanceType("").Values()
	for _, kind := range all {
		g.Expect(known).To(ContainElement(types.InstanceType(kind.Name)))
		g.Expect(kind.VCPUs*kind.MemoryMiB*kind.MaxInterfaces*kind.AddressesPerInterface*kind.Attachments).NotTo(BeZero(), kind.Name)
		g.Expect(kind.SpotPrice > 0).To(Equal(kind.Spot), kind.Name)
	}
}
