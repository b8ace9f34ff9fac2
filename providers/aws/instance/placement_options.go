package instance

import (
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

// addIdentity gives the instance its role, by the name or the ARN of the profile; a name has no colon.
func addIdentity(in *ec2.RunInstancesInput, spec *infrav1.AWSMachineSpec) {
	profile := spec.IAMInstanceProfile
	switch {
	case profile == "":
	case strings.Contains(profile, ":"):
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Arn: aws.String(profile)}
	default:
		in.IamInstanceProfile = &types.IamInstanceProfileSpecification{Name: aws.String(profile)}
	}
}

// addMarket sets how the instance is bought, and which reserved capacity it uses. EC2 knows on demand by the absence of options.
func addMarket(in *ec2.RunInstancesInput, spec *infrav1.AWSMachineSpec) {
	switch {
	case spec.Spot != nil:
		in.InstanceMarketOptions = spotOptions(spec.Spot)
	case spec.MarketType == infrav1.MarketTypeCapacityBlock:
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeCapacityBlock}
	}
	if spec.CapacityReservation != nil {
		in.CapacityReservationSpecification = capacityReservation(spec.CapacityReservation)
	}
}

func spotOptions(spot *infrav1.Spot) *types.InstanceMarketOptionsRequest {
	return &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot, SpotOptions: &types.SpotMarketOptions{
		SpotInstanceType:             types.SpotInstanceTypeOneTime,
		InstanceInterruptionBehavior: types.InstanceInterruptionBehaviorTerminate,
		MaxPrice:                     optional(spot.MaxPrice),
	}}
}

func capacityReservation(c *infrav1.CapacityReservation) *types.CapacityReservationSpecification {
	out := &types.CapacityReservationSpecification{CapacityReservationPreference: types.CapacityReservationPreference(c.Preference)}
	if c.ID != "" || c.ResourceGroupARN != "" {
		out.CapacityReservationTarget = &types.CapacityReservationTarget{
			CapacityReservationId: optional(c.ID), CapacityReservationResourceGroupArn: optional(c.ResourceGroupARN),
		}
	}
	return out
}

// addHardware sets what the instance runs on. The zone is not repeated here: the subnet has it.
func addHardware(in *ec2.RunInstancesInput, spec *infrav1.AWSMachineSpec) {
	if p := spec.Placement; p != nil {
		in.Placement = &types.Placement{
			PartitionNumber:      p.Partition,
			Tenancy:              types.Tenancy(p.Tenancy),
			HostId:               optional(p.HostID),
			HostResourceGroupArn: optional(p.HostResourceGroupARN),
			Affinity:             optional(string(p.Affinity)),
		}
		if placementGroupID.MatchString(p.GroupName) {
			in.Placement.GroupId = aws.String(p.GroupName)
		} else {
			in.Placement.GroupName = optional(p.GroupName)
		}
	}
	if o := spec.CPUOptions; o != nil {
		in.CpuOptions = &types.CpuOptionsRequest{CoreCount: o.CoreCount, ThreadsPerCore: o.ThreadsPerCore}
		if o.AMDSEVSNP != nil {
			in.CpuOptions.AmdSevSnp = types.AmdSevSnpSpecification(enabled(*o.AMDSEVSNP))
		}
		if o.NestedVirtualization != nil {
			in.CpuOptions.NestedVirtualization = types.NestedVirtualizationSpecification(enabled(*o.NestedVirtualization))
		}
	}
}

// optional is nil for what is not set.
func optional(value string) *string {
	if value == "" {
		return nil
	}
	return aws.String(value)
}

// enabled is EC2's word for a switch.
func enabled(on bool) string {
	if on {
		return "enabled"
	}
	return "disabled"
}
