package instance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

func TestRunInputNamesNothingThatIsNotAskedFor(t *testing.T) {
	g := NewWithT(t)
	in := runInput(testLaunch(), image{id: "ami-1"}, network{})
	g.Expect(in.CapacityReservationSpecification).To(BeNil())
	g.Expect(in.Placement).To(BeNil())
	g.Expect(in.CpuOptions).To(BeNil())
	g.Expect(in.DisableApiTermination).To(BeNil())
	g.Expect(in.MetadataOptions.InstanceMetadataTags).To(Equal(types.InstanceMetadataTagsStateDisabled), "whatever the account's default is")
}

func TestRunInputWithHardware(t *testing.T) {
	g := NewWithT(t)
	in := runInput(testLaunch(func(s *infrav1.AWSMachineSpec) {
		s.IAMInstanceProfile = "arn:aws:iam::123456789012:instance-profile/node"
		s.MarketType = infrav1.MarketTypeCapacityBlock
		s.CapacityReservation = &infrav1.CapacityReservation{ID: "cr-1", Preference: infrav1.CapacityReservationOnly}
		s.Placement = &infrav1.Placement{GroupName: "g", Partition: aws.Int32(2), Tenancy: infrav1.TenancyHost, HostID: "h-1", Affinity: "host"}
		s.CPUOptions = &infrav1.CPUOptions{
			AMDSEVSNP:            aws.Bool(true),
			CoreCount:            aws.Int32(2),
			ThreadsPerCore:       aws.Int32(1),
			NestedVirtualization: aws.Bool(false),
		}
		s.TerminationProtection = aws.Bool(true)
		s.RootVolume = &infrav1.Volume{SnapshotID: "snap-1"}
	}), image{id: "ami-1", rootDevice: "/dev/xvda"}, network{})
	g.Expect(in.IamInstanceProfile).
		To(Equal(&types.IamInstanceProfileSpecification{Arn: aws.String("arn:aws:iam::123456789012:instance-profile/node")}))
	g.Expect(in.InstanceMarketOptions).To(Equal(&types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeCapacityBlock}))
	g.Expect(in.CapacityReservationSpecification).To(Equal(&types.CapacityReservationSpecification{
		CapacityReservationPreference: types.CapacityReservationPreferenceCapacityReservationsOnly,
		CapacityReservationTarget:     &types.CapacityReservationTarget{CapacityReservationId: aws.String("cr-1")},
	}))
	g.Expect(in.Placement).To(Equal(&types.Placement{GroupName: aws.String("g"), PartitionNumber: aws.Int32(2), Tenancy: types.TenancyHost,
		HostId: aws.String("h-1"), Affinity: aws.String("host")}))
	g.Expect(in.CpuOptions).To(Equal(&types.CpuOptionsRequest{AmdSevSnp: types.AmdSevSnpSpecificationEnabled, CoreCount: aws.Int32(2),
		ThreadsPerCore: aws.Int32(1), NestedVirtualization: types.NestedVirtualizationSpecificationDisabled}))
	g.Expect(in.DisableApiTermination).To(HaveValue(BeTrue()))
	g.Expect(in.BlockDeviceMappings[0].Ebs.SnapshotId).To(HaveValue(Equal("snap-1")))
}

func TestRunInputWithAGroupOfReservations(t *testing.T) {
	g := NewWithT(t)
	in := runInput(testLaunch(func(s *infrav1.AWSMachineSpec) {
		s.MarketType = infrav1.MarketTypeOnDemand
		s.CapacityReservation = &infrav1.CapacityReservation{ResourceGroupARN: "arn"}
		s.Placement = &infrav1.Placement{HostResourceGroupARN: "hosts", Tenancy: infrav1.TenancyHost}
	}), image{id: "ami-1"}, network{})
	g.Expect(in.InstanceMarketOptions).To(BeNil(), "on demand is what EC2 does without options")
	g.Expect(in.CapacityReservationSpecification.CapacityReservationPreference).To(BeEmpty())
	g.Expect(in.CapacityReservationSpecification.CapacityReservationTarget.CapacityReservationResourceGroupArn).To(HaveValue(Equal("arn")))
	g.Expect(in.Placement.HostResourceGroupArn).To(HaveValue(Equal("hosts")))
}

func TestSizeWithoutSomeCores(t *testing.T) {
	g := NewWithT(t)
	m := model{cpus: 8, memoryMiB: 1024}
	g.Expect(cpusOf(m, &infrav1.AWSMachineSpec{CPUOptions: &infrav1.CPUOptions{AMDSEVSNP: aws.Bool(true)}})).To(BeEquivalentTo(8))
	few := &infrav1.AWSMachineSpec{CPUOptions: &infrav1.CPUOptions{CoreCount: aws.Int32(3), ThreadsPerCore: aws.Int32(1)}}
	g.Expect(cpusOf(m, few)).To(BeEquivalentTo(3))
}
