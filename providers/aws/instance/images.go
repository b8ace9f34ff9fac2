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

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// image is what a launch needs to know of an AMI.
type image struct {
	id string
	// rootDevice is the device name under which the root volume is changed.
	rootDevice string
	// rootGiB is the size of its own root volume; 0 if EC2 does not say.
	rootGiB int32
}

// image finds the AMI of a launch. An id, of the spec or of a parameter, is looked up only when the root volume is to be changed, for its
// device name.
func (r *region) image(ctx context.Context, spec *infrav1.AWSMachineSpec) (image, error) {
	return r.findImage(ctx, spec, spec.RootVolume != nil)
}

// findImage finds the AMI; with needRoot what is known of its root volume as well.
func (r *region) findImage(ctx context.Context, spec *infrav1.AWSMachineSpec, needRoot bool) (image, error) {
	ref := spec.AMI
	if ref.SSMParameter != "" {
		id, err := r.parameterImage(ctx, ref.SSMParameter)
		if err != nil {
			return image{}, err
		}
		ref.ID = id
	}
	if ref.ID != "" {
		if !needRoot {
			return image{id: ref.ID}, nil
		}
		return r.images.get(ctx, ref.ID, true, func(ctx context.Context) (image, error) {
			return r.newestImage(ctx, &ec2.DescribeImagesInput{ImageIds: []string{ref.ID}})
		})
	}
	key := fmt.Sprintf("%q of %q for %s", ref.Filters, ref.Owners, spec.InstanceType)
	return r.images.get(ctx, key, false, func(ctx context.Context) (image, error) {
		filters, err := r.imageFilters(ctx, ref.Filters, spec.InstanceType)
		if err != nil {
			return image{}, err
		}
		return r.newestImage(ctx, &ec2.DescribeImagesInput{Owners: ref.Owners, Filters: filters})
	})
}

// newestImage returns the newest available image. Images of the same age are ordered by id, so that
// the answer is always the same.
func (r *region) newestImage(ctx context.Context, in *ec2.DescribeImagesInput) (image, error) {
	var all []types.Image
	pages := ec2.NewDescribeImagesPaginator(r.api, in)
	for pages.HasMorePages() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return image{}, r.unresolved(classify("DescribeImages", err))
		}
		all = append(all, page.Images...)
	}
	found, others := partition(all, func(i types.Image) bool { return i.State == "" || i.State == types.ImageStateAvailable })
	if len(found) == 0 {
		return image{}, r.unresolved(driver.NewUnresolvedError("DescribeImages", "", noImage(in, others)))
	}
	newest := slices.MaxFunc(found, func(a, b types.Image) int {
		return cmp.Or(
			strings.Compare(aws.ToString(a.CreationDate), aws.ToString(b.CreationDate)), // RFC 3339, all in UTC
			strings.Compare(aws.ToString(a.ImageId), aws.ToString(b.ImageId)),
		)
	})
	return imageOf(newest), nil
}

func imageOf(i types.Image) image {
	out := image{id: aws.ToString(i.ImageId), rootDevice: aws.ToString(i.RootDeviceName)}
	for _, device := range i.BlockDeviceMappings {
		if aws.ToString(device.DeviceName) == out.rootDevice && device.Ebs != nil {
			out.rootGiB = aws.ToInt32(device.Ebs.VolumeSize)
		}
	}
	return out
}

// noImage reports what was searched for, and what was found that cannot be used.
func noImage(in *ec2.DescribeImagesInput, others []types.Image) error {
	var states []string
	for _, i := range others {
		states = append(states, fmt.Sprintf("image %s is %s", aws.ToString(i.ImageId), i.State))
	}
	found := listed(states)
	switch {
	case len(in.ImageIds) > 0 && found != "":
		return errors.New(found)
	case len(in.ImageIds) > 0:
		return errors.Errorf("there is no image %s", strings.Join(in.ImageIds, ", "))
	case found != "":
		found = "; " + found
	}
	return errors.Errorf("no available image matches the filters %s among those of the owners %s%s",
		searched(in.Filters), strings.Join(in.Owners, ", "), found)
}

// filters turns the filters of the API into the SDK's.
func filters(list []infrav1.Filter) []types.Filter {
	out := make([]types.Filter, 0, len(list))
	for _, f := range list {
		out = append(out, types.Filter{Name: aws.String(f.Name), Values: f.Values})
	}
	return out
}
