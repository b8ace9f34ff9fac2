package instance

import (
	"context"

	"github.com/aws/aws-sdk-go-v2/service/ec2"

	"millwright.dev/providers/driver"
)

// Delete terminates the instance. EC2 takes the repetition for a termination that is under way.
func (d *Driver) Delete(ctx context.Context, h driver.Handle) error {
	r, err := d.in(ctx, string(h.Scope))
	if err != nil {
		return err
	}
	_, err = r.api.TerminateInstances(ctx, &ec2.TerminateInstancesInput{
		InstanceIds: []string{instanceID(h.ProviderID)},
	}, once)
	return classify("TerminateInstances", err)
}
