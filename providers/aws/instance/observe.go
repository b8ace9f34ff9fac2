package instance

import (
	"context"
	"regexp"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// pageSize is EC2's limit on the instances in one page.
const pageSize = 1000

// maxFilterValues is EC2's limit on the values of all filters of one call.
const maxFilterValues = 200

// Observe reads the instances by their IDs and, where there is none, by their client tokens.
func (d *Driver) Observe(ctx context.Context, scope driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	r, err := d.in(ctx, scope)
	if err != nil {
		return driver.Failed[driver.Instance](len(handles), err)
	}
	var ids, tokens []string
	for _, h := range handles {
		if h.ProviderID != "" {
			ids = append(ids, instanceID(h.ProviderID))
		} else {
			tokens = append(tokens, h.Token)
		}
	}
	byID, idErr := r.byIDs(ctx, ids)
	byToken, tokenErr := r.byTokens(ctx, tokens)
	answers := make([]driver.Answer[driver.Instance], 0, len(handles))
	for _, h := range handles {
		found, err, missing := byToken[h.Token], tokenErr, "no instance has the client token"
		if h.ProviderID != "" {
			found, err, missing = byID[instanceID(h.ProviderID)], idErr, "no such instance"
		}
		if err == nil && found.ID == "" {
			err = driver.NewNotFoundError("DescribeInstances", "", errors.New(missing))
		}
		answers = append(answers, driver.Answer[driver.Instance]{Value: found, Err: err})
	}
	return answers
}

// plainID is what may stand in a filter as an ID: EC2 takes * and ? there for any characters, and users of the API write
// provider IDs.
var plainID = regexp.MustCompile(`^[A-Za-z0-9-]+$`)

// byIDs returns those of the instances that exist. EC2 refuses a call that names one that does not, unless a filter names
// it. One alone is named directly: such a call works while another zone is disrupted.
func (r *region) byIDs(ctx context.Context, ids []string) (map[string]driver.Instance, error) {
	ids = slices.DeleteFunc(distinct(ids), func(id string) bool { return !plainID.MatchString(id) })
	var found []driver.Instance
	if len(ids) == 1 {
		one, err := r.describe(ctx, &ec2.DescribeInstancesInput{InstanceIds: ids}, once)
		if driver.IgnoreNotFound(err) != nil {
			return nil, err
		}
		found = one
	} else {
		many, err := r.describeBy(ctx, "instance-id", ids)
		if err != nil {
			return nil, err
		}
		found = many
	}
	byID := make(map[string]driver.Instance, len(found))
	for _, i := range found {
		byID[i.ID] = i
	}
	return byID, nil
}

// byTokens finds the instances that client tokens made. Should there be an ended one and a live one of the same token,
// the live one counts: it must not stay behind.
func (r *region) byTokens(ctx context.Context, tokens []string) (map[string]driver.Instance, error) {
	found, err := r.describeBy(ctx, "client-token", distinct(tokens))
	if err != nil {
		return nil, err
	}
	byToken := make(map[string]driver.Instance, len(found))
	for _, i := range found {
		if other, ok := byToken[i.Token]; !ok || other.State == driverv1.InstanceTerminated {
			byToken[i.Token] = i
		}
	}
	return byToken, nil
}

// describeBy returns the instances of which the filter has one of the values, literally.
func (r *region) describeBy(ctx context.Context, filter string, values []string) ([]driver.Instance, error) {
	var found []driver.Instance
	for chunk := range slices.Chunk(values, maxFilterValues) {
		some, err := r.describe(ctx, &ec2.DescribeInstancesInput{
			MaxResults: aws.Int32(pageSize), Filters: []types.Filter{literally(filter, chunk)},
		}, once)
		if err != nil {
			return nil, err
		}
		found = append(found, some...)
	}
	return found, nil
}

// wildcards makes the characters literal that stand for others in the values of filters.
var wildcards = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `?`, `\?`)

func literally(filter string, values []string) types.Filter {
	f := types.Filter{Name: aws.String(filter)}
	for _, v := range values {
		f.Values = append(f.Values, wildcards.Replace(v))
	}
	return f
}

// distinct returns the values that are not empty, each once.
func distinct(values []string) []string {
	values = slices.Compact(slices.Sorted(slices.Values(values)))
	return slices.DeleteFunc(values, func(v string) bool { return v == "" })
}

// List returns all instances that carry the tag of an owner.
func (d *Driver) List(ctx context.Context, scope driver.Scope) ([]driver.Instance, error) {
	r, err := d.in(ctx, scope)
	if err != nil {
		return nil, err
	}
	return r.describe(ctx, &ec2.DescribeInstancesInput{
		MaxResults: aws.Int32(pageSize),
		Filters:    []types.Filter{{Name: aws.String("tag-key"), Values: []string{TagOwnerUID}}},
	})
}

func (r *region) describe(ctx context.Context, in *ec2.DescribeInstancesInput, opts ...func(*ec2.Options)) ([]driver.Instance, error) {
	var found []driver.Instance
	pages := ec2.NewDescribeInstancesPaginator(r.api, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx, opts...)
		if err != nil {
			return nil, classify("DescribeInstances", err)
		}
		for _, reservation := range page.Reservations {
			for _, i := range reservation.Instances {
				found = append(found, fromEC2(i))
			}
		}
	}
	return found, nil
}
