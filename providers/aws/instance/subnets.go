package instance

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// subnet is a place to put an instance.
type subnet struct {
	id   string
	zone string
}

// candidates returns the subnets that the spec allows, in the failure domain if one is asked for, in
// the order of the spec.
func (r *region) candidates(ctx context.Context, spec *infrav1.AWSMachineSpec, failureDomain string) ([]subnet, error) {
	var all []subnet
	for _, ref := range spec.Subnets {
		found, err := r.resolve(ctx, ref)
		if err != nil {
			return nil, err
		}
		for _, s := range found {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	here := slices.DeleteFunc(all, func(s subnet) bool { return failureDomain != "" && s.zone != failureDomain })
	if len(here) == 0 {
		return nil, driver.NewTerminalError("DescribeSubnets", "",
			errors.Errorf("none of the subnets is in the failure domain %q that the Machine asks for", failureDomain))
	}
	return here, nil
}

func (r *region) resolve(ctx context.Context, ref infrav1.SubnetReference) ([]subnet, error) {
	in := &ec2.DescribeSubnetsInput{Filters: filters(ref.Filters)}
	key := fmt.Sprintf("%v", ref.Filters)
	if ref.ID != "" {
		in, key = &ec2.DescribeSubnetsInput{SubnetIds: []string{ref.ID}}, ref.ID
	}
	return r.subnets.get(ctx, key, ref.ID != "", func(ctx context.Context) ([]subnet, error) {
		return r.describeSubnets(ctx, in, key)
	})
}

func (r *region) describeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput, what string) ([]subnet, error) {
	var found []subnet
	pages := ec2.NewDescribeSubnetsPaginator(r.api, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, classify("DescribeSubnets", err)
		}
		for _, s := range page.Subnets {
			if s.State == "" || s.State == types.SubnetStateAvailable {
				found = append(found, subnet{id: aws.ToString(s.SubnetId), zone: aws.ToString(s.AvailabilityZone)})
			}
		}
	}
	if len(found) == 0 {
		return nil, driver.NewTerminalError("DescribeSubnets", "", errors.Errorf("no available subnet matches %s", what))
	}
	slices.SortFunc(found, func(a, b subnet) int { return strings.Compare(a.id, b.id) })
	return found, nil
}
