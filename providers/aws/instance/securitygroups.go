package instance

import (
	"context"
	"fmt"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// filterVPC is the name of the filter of DescribeSecurityGroups.
const filterVPC = "vpc-id"

// securityGroups returns the groups of the primary interface: those of the spec, and all that its selectors find, in the order of
// their IDs, since the same token must always come with the same request.
func (r *region) securityGroups(ctx context.Context, spec *infrav1.AWSMachineSpec, place driver.Placement) ([]string, error) {
	if len(spec.SecurityGroupSelectors) == 0 {
		return spec.SecurityGroupIDs, nil
	}
	vpc, err := r.vpcOf(ctx, place.ID)
	if err != nil {
		return nil, err
	}
	all := slices.Clone(spec.SecurityGroupIDs)
	for _, selector := range spec.SecurityGroupSelectors {
		in := &ec2.DescribeSecurityGroupsInput{Filters: groupFilters(selector.Filters, vpc)}
		found, err := r.groups.get(ctx, fmt.Sprintf("%q in %s", selector.Filters, vpc), false, func(ctx context.Context) ([]string, error) {
			return r.describeGroups(ctx, in)
		})
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return distinct(all), nil
}

// groupFilters adds the VPC, unless the filters name one: groups of another one cannot be used, and often have the same tags.
func groupFilters(list []infrav1.Filter, vpc string) []types.Filter {
	out := filters(list)
	if vpc == "" || slices.ContainsFunc(list, func(f infrav1.Filter) bool { return f.Name == filterVPC }) {
		return out
	}
	return append(out, types.Filter{Name: aws.String(filterVPC), Values: []string{vpc}})
}

func (r *region) describeGroups(ctx context.Context, in *ec2.DescribeSecurityGroupsInput) ([]string, error) {
	var found []string
	pages := ec2.NewDescribeSecurityGroupsPaginator(r.api, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, r.unresolved(classify("DescribeSecurityGroups", err))
		}
		for i := range page.SecurityGroups {
			found = append(found, aws.ToString(page.SecurityGroups[i].GroupId))
		}
	}
	if len(found) == 0 {
		return nil, r.unresolved(driver.NewUnresolvedError("DescribeSecurityGroups", "",
			errors.Errorf("no security group matches the filters %s", searched(in.Filters))))
	}
	return found, nil
}
