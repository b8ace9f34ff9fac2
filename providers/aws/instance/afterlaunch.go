package instance

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

// afterLaunch makes what RunInstances cannot ask for: so far the check of sources and destinations, which each interface has for
// itself. It compares the spec with what EC2 describes of the instance and calls for what differs alone, so that it may be called again
// with any later description, and costs nothing once all is as it should be. An interface that EC2 does not know yet, soon after
// the launch, is of class Unresolved.
func (r *region) afterLaunch(ctx context.Context, spec *infrav1.AWSMachineSpec, described *types.Instance) error {
	want := spec.SourceDestCheck
	if want == nil {
		return nil
	}
	for _, nic := range described.NetworkInterfaces {
		// Without IP addresses there is nothing to check.
		checkless := aws.ToString(nic.InterfaceType) == string(infrav1.InterfaceTypeEFAOnly)
		if checkless || nic.SourceDestCheck != nil && *nic.SourceDestCheck == *want {
			continue
		}
		_, err := r.api.ModifyNetworkInterfaceAttribute(ctx, &ec2.ModifyNetworkInterfaceAttributeInput{
			NetworkInterfaceId: nic.NetworkInterfaceId, SourceDestCheck: &types.AttributeBooleanValue{Value: want},
		}, once)
		if err != nil {
			return classify("ModifyNetworkInterfaceAttribute", err)
		}
	}
	return nil
}
