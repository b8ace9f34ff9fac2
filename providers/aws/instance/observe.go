package instance

import (
	"context"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// pageSize is EC2's limit on the instances in one page.
const pageSize = 1000

// Observe reads one instance.
func (d *Driver) Observe(ctx context.Context, h driver.Handle) (driver.Instance, error) {
	r, err := d.in(ctx, string(h.Scope))
	if err != nil {
		return driver.Instance{}, err
	}
	if h.ProviderID == "" {
		return r.byToken(ctx, h.Token)
	}
	found, err := r.describe(ctx, &ec2.DescribeInstancesInput{InstanceIds: []string{instanceID(h.ProviderID)}})
	if err != nil {
		return driver.Instance{}, err
	}
	if len(found) == 0 {
		return driver.Instance{}, driver.NewNotFoundError("DescribeInstances", "", errors.New("no such instance"))
	}
	return found[0], nil
}

// byToken finds the instance that a client token made. Should there be an ended one and a live one,
// the live one counts: it must not stay behind.
func (r *region) byToken(ctx context.Context, token string) (driver.Instance, error) {
	found, err := r.describe(ctx, &ec2.DescribeInstancesInput{
		Filters: []types.Filter{{Name: aws.String("client-token"), Values: []string{token}}},
	})
	if err != nil {
		return driver.Instance{}, err
	}
	if len(found) == 0 {
		return driver.Instance{}, driver.NewNotFoundError("DescribeInstances", "", errors.New("no instance has the client token"))
	}
	for _, i := range found {
		if i.State != driverv1.InstanceTerminated {
			return i, nil
		}
	}
	return found[0], nil
}

// List returns all instances that carry the tag of an owner.
func (d *Driver) List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error) {
	r, err := d.in(ctx, string(scope))
	if err != nil {
		return nil, err
	}
	return r.describe(ctx, &ec2.DescribeInstancesInput{
		MaxResults: aws.Int32(pageSize),
		Filters:    []types.Filter{{Name: aws.String("tag-key"), Values: []string{TagOwnerUID}}},
	})
}

func (r *region) describe(ctx context.Context, in *ec2.DescribeInstancesInput) ([]driver.Instance, error) {
	var found []driver.Instance
	pages := ec2.NewDescribeInstancesPaginator(r.api, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeInstances", err)
		}
		for _, reservation := range page.Reservations {
			for _, i := range reservation.Instances {
				found = append(found, fromEC2(i))
				r.noteShortage(i, found[len(found)-1])
			}
		}
	}
	return found, nil
}

// noteShortage remembers that EC2 took a launch back for lack of capacity. It is known from every list for as long as the
// instance is listed, so a replacement profits from it also after a restart. Ended instances have no subnet any more.
func (r *region) noteShortage(i types.Instance, seen driver.Instance) {
	if seen.Short {
		r.capacity.saw(offering{instanceType: string(i.InstanceType), spot: seen.Interruptible, zone: seen.FailureDomain}, seen.LaunchTime)
	}
}

// Dependants lists the volumes and network interfaces that were tagged at the launch. Those that name another object are
// not counted: whoever writes a launch record can have resources tagged with any UID, and with no name but the object's.
func (d *Driver) Dependants(ctx context.Context, h driver.Handle) ([]string, error) {
	r, err := d.in(ctx, string(h.Scope))
	if err != nil {
		return nil, err
	}
	byOwner := []types.Filter{{Name: aws.String("tag:" + TagOwnerUID), Values: []string{string(h.OwnerUID)}}}
	volumes, err := r.api.DescribeVolumes(ctx, &ec2.DescribeVolumesInput{Filters: byOwner})
	if err != nil {
		return nil, classify("DescribeVolumes", err)
	}
	nics, err := r.api.DescribeNetworkInterfaces(ctx, &ec2.DescribeNetworkInterfacesInput{Filters: byOwner})
	if err != nil {
		return nil, classify("DescribeNetworkInterfaces", err)
	}
	var left []string
	for _, v := range volumes.Volumes {
		if ofAnother(v.Tags, h) {
			continue
		}
		left = append(left, fmt.Sprintf("volume %s", aws.ToString(v.VolumeId)))
	}
	for _, n := range nics.NetworkInterfaces {
		if ofAnother(n.TagSet, h) {
			continue
		}
		left = append(left, fmt.Sprintf("network interface %s", aws.ToString(n.NetworkInterfaceId)))
	}
	return left, nil
}

func ofAnother(tags []types.Tag, h driver.Handle) bool {
	owner := tagValue(tags, TagMachine)
	return owner != "" && owner != h.Owner
}
