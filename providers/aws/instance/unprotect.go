package instance

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"k8s.io/utils/ptr"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

var _ driver.Unprotector[*infrav1.AWSMachine] = (*Driver)(nil)

// Protected returns whether the spec asks for termination protection.
func (d *Driver) Protected(m *infrav1.AWSMachine) bool {
	return ptr.Deref(m.Spec.TerminationProtection, false)
}

// Unprotect lifts it. EC2 takes one instance for each call.
func (d *Driver) Unprotect(ctx context.Context, scope driver.Scope, handle driver.Handle) error {
	r, err := d.in(ctx, scope)
	if err != nil {
		return err
	}
	_, err = r.api.ModifyInstanceAttribute(ctx, &ec2.ModifyInstanceAttributeInput{
		InstanceId:            aws.String(instanceID(handle.ProviderID)),
		DisableApiTermination: &types.AttributeBooleanValue{Value: aws.Bool(false)},
	}, once)
	return classify("ModifyInstanceAttribute", err)
}
