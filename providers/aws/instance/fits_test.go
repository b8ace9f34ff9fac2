package instance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

// What depends on the instance type is refused with the field before the launch; what EC2 does not say of a type is left to EC2.
func TestMisfit_BeyondTheInstanceType_NamesTheField(t *testing.T) {
	efa := infrav1.ExtraInterface{InterfaceType: infrav1.InterfaceTypeEFAOnly}
	m5 := &types.InstanceTypeInfo{
		SupportedUsageClasses: []types.UsageClassType{types.UsageClassTypeOnDemand},
		ProcessorInfo:         &types.ProcessorInfo{SupportedArchitectures: []types.ArchitectureType{"x86_64"}},
		VCpuInfo:              &types.VCpuInfo{DefaultVCpus: aws.Int32(2), ValidCores: []int32{1}, ValidThreadsPerCore: []int32{1, 2}},
		EbsInfo:               &types.EbsInfo{MaximumEbsAttachments: aws.Int32(28), AttachmentLimitType: types.AttachmentLimitTypeShared},
		NetworkInfo: &types.NetworkInfo{
			MaximumNetworkInterfaces: aws.Int32(3), MaximumNetworkCards: aws.Int32(1), Ipv6AddressesPerInterface: aws.Int32(10),
			EfaSupported: aws.Bool(false),
		},
	}
	for want, spec := range map[string]infrav1.AWSMachineSpec{
		"spot: the instance type is not sold":                     {Spot: &infrav1.Spot{}},
		"extraInterfaces: the instance type has at most 3":        {ExtraInterfaces: make([]infrav1.ExtraInterface, 3)},
		"volumes: the instance type takes at most 28 attachments": {ExtraInterfaces: make([]infrav1.ExtraInterface, 2), Volumes: make([]infrav1.DataVolume, 25)},
		"interfaceType: the instance type has at most 0":          {ExtraInterfaces: []infrav1.ExtraInterface{efa}},
		"ipv6.count: an interface":                                {IPv6: &infrav1.IPv6{Count: aws.Int32(11)}},
		"extraInterfaces[0].networkCardIndex":                     {ExtraInterfaces: []infrav1.ExtraInterface{{NetworkCardIndex: aws.Int32(1)}}},
		"cpuOptions.coreCount: the instance type takes one of":    {CPUOptions: &infrav1.CPUOptions{CoreCount: aws.Int32(2), ThreadsPerCore: aws.Int32(1)}},
		"cpuOptions.amdSevSnp":                                    {CPUOptions: &infrav1.CPUOptions{AMDSEVSNP: aws.Bool(true)}},
		"cpuOptions.nestedVirtualization":                         {CPUOptions: &infrav1.CPUOptions{NestedVirtualization: aws.Bool(true)}},
	} {
		t.Run(want, func(t *testing.T) {
			g := NewWithT(t)
			attachments := 2 + len(spec.Volumes) + len(spec.ExtraInterfaces)
			g.Expect(misfit(&spec, fromInstanceType(m5), attachments)).To(MatchError(HavePrefix(want)))
			bare := &types.InstanceTypeInfo{ProcessorInfo: m5.ProcessorInfo}
			g.Expect(misfit(&spec, fromInstanceType(bare), attachments)).To(Succeed(), "EC2 says nothing of it")
		})
	}
	fits := infrav1.AWSMachineSpec{
		ExtraInterfaces: make([]infrav1.ExtraInterface, 2), Volumes: make([]infrav1.DataVolume, 24), IPv6: &infrav1.IPv6{Count: aws.Int32(10)},
		CPUOptions: &infrav1.CPUOptions{CoreCount: aws.Int32(1), ThreadsPerCore: aws.Int32(1), AMDSEVSNP: aws.Bool(false)},
	}
	NewWithT(t).Expect(misfit(&fits, fromInstanceType(m5), 28)).To(Succeed())
}
