package instance

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"
	logf "sigs.k8s.io/controller-runtime/pkg/log"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// subnet is a place to put an instance.
type subnet struct {
	id     string
	zone   string
	zoneID string
	vpc    string
}

// candidates returns the subnets that the spec allows, in the failure domain if one is asked for and where the extra interfaces
// have one too, in the order of the spec. One that is not there, or not yet, holds up no launch that may go elsewhere.
func (r *region) candidates(ctx context.Context, spec *infrav1.AWSMachineSpec, failureDomain string) ([]subnet, error) {
	var all []subnet
	var missing error
	for _, ref := range spec.Subnets {
		found, err := r.resolve(ctx, ref)
		switch {
		case driver.IsUnresolved(err):
			missing = cmp.Or(missing, err)
		case err != nil:
			return nil, err
		}
		for _, s := range found {
			if !slices.Contains(all, s) {
				all = append(all, s)
			}
		}
	}
	here := slices.DeleteFunc(all, func(s subnet) bool {
		// The console prints the zone's ID, such as use1-az1, beside its name.
		return failureDomain != "" && s.zone != failureDomain && s.zoneID != failureDomain
	})
	switch {
	case len(here) == 0 && missing != nil:
		return nil, missing
	case len(here) == 0:
		return nil, r.noneIn(failureDomain, spec.Subnets)
	case missing != nil:
		logf.FromContext(ctx).Info("Launching in the other subnets of the spec", "missing", missing.Error())
	}
	return r.whereExtraSubnetsAre(ctx, spec, here)
}

// noneIn is the error for subnets that are all in other failure domains. Those that are named by ID never change that; a search
// may find another one.
func (r *region) noneIn(failureDomain string, refs []infrav1.SubnetReference) error {
	err := errors.Errorf("none of the subnets is in the failure domain %q that the Machine asks for", failureDomain)
	if slices.ContainsFunc(refs, func(ref infrav1.SubnetReference) bool { return ref.ID == "" }) {
		return r.unresolved(driver.NewUnresolvedError("DescribeSubnets", "", err))
	}
	return driver.NewTerminalError("DescribeSubnets", "", err)
}

func (r *region) resolve(ctx context.Context, ref infrav1.SubnetReference) ([]subnet, error) {
	in := &ec2.DescribeSubnetsInput{Filters: filters(ref.Filters)}
	key := fmt.Sprintf("%q", ref.Filters)
	if ref.ID != "" {
		in, key = &ec2.DescribeSubnetsInput{SubnetIds: []string{ref.ID}}, ref.ID
	}
	return r.subnets.get(ctx, key, ref.ID != "", func(ctx context.Context) ([]subnet, error) {
		return r.describeSubnets(ctx, in)
	})
}

func (r *region) describeSubnets(ctx context.Context, in *ec2.DescribeSubnetsInput) ([]subnet, error) {
	var found []subnet
	var others []string
	pages := ec2.NewDescribeSubnetsPaginator(r.api, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, r.unresolved(classify("DescribeSubnets", err))
		}
		for _, s := range page.Subnets {
			if s.State == "" || s.State == types.SubnetStateAvailable {
				found = append(found, subnet{
					id: aws.ToString(s.SubnetId), zone: aws.ToString(s.AvailabilityZone),
					zoneID: aws.ToString(s.AvailabilityZoneId), vpc: aws.ToString(s.VpcId),
				})
				continue
			}
			others = append(others, fmt.Sprintf("subnet %s is %s", aws.ToString(s.SubnetId), s.State))
		}
	}
	if len(found) == 0 {
		return nil, r.unresolved(driver.NewUnresolvedError("DescribeSubnets", "", noSubnet(in, listed(others))))
	}
	slices.SortFunc(found, func(a, b subnet) int { return strings.Compare(a.id, b.id) })
	return found, nil
}

// noSubnet reports what was searched for, and what was found that cannot be used.
func noSubnet(in *ec2.DescribeSubnetsInput, found string) error {
	switch {
	case len(in.SubnetIds) > 0 && found != "":
		return errors.New(found)
	case len(in.SubnetIds) > 0:
		return errors.Errorf("there is no subnet %s", strings.Join(in.SubnetIds, ", "))
	case found != "":
		found = "; " + found
	}
	return errors.Errorf("no available subnet matches the filters %s%s", searched(in.Filters), found)
}
