package instance

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// filterArchitecture is the name of the filter of DescribeImages.
const filterArchitecture = "architecture"

// imageFilters returns the filters of an image search. Unless they name an architecture, images that
// the instance type cannot boot are left out: publishers name the images of all architectures alike.
func (r *region) imageFilters(ctx context.Context, list []infrav1.Filter, instanceType string) ([]types.Filter, error) {
	out := filters(list)
	if slices.ContainsFunc(list, func(f infrav1.Filter) bool { return f.Name == filterArchitecture }) {
		return out, nil
	}
	architectures, err := r.architectures.get(ctx, instanceType, true, func(ctx context.Context) ([]string, error) {
		return r.describeArchitectures(ctx, instanceType)
	})
	if err != nil {
		return nil, err
	}
	return append(out, types.Filter{Name: aws.String(filterArchitecture), Values: architectures}), nil
}

func (r *region) describeArchitectures(ctx context.Context, instanceType string) ([]string, error) {
	out, err := r.api.DescribeInstanceTypes(ctx, &ec2.DescribeInstanceTypesInput{
		InstanceTypes: []types.InstanceType{types.InstanceType(instanceType)},
	})
	if err != nil {
		return nil, classify("DescribeInstanceTypes", err)
	}
	var architectures []string
	for _, t := range out.InstanceTypes {
		if t.ProcessorInfo == nil {
			continue
		}
		for _, a := range t.ProcessorInfo.SupportedArchitectures {
			architectures = append(architectures, string(a))
		}
	}
	if len(architectures) == 0 {
		return nil, driver.NewTerminalError("DescribeInstanceTypes", "",
			errors.Errorf("the region does not offer the instance type %s", instanceType))
	}
	return architectures, nil
}
