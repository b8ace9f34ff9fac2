package instance

import (
	"cmp"
	"context"
	"encoding/base64"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// Create runs one instance.
func (d *Driver) Create(ctx context.Context, launch driver.Launch[*infrav1.AWSMachine]) (driver.Accepted, error) {
	launch.Object = normalized(launch.Object)
	i, err := d.run(ctx, launch)
	return driver.Accepted{Instance: i}, err
}

func (d *Driver) run(ctx context.Context, launch driver.Launch[*infrav1.AWSMachine]) (driver.Instance, error) {
	spec := &launch.Object.Spec
	r, err := d.in(ctx, launch.Scope)
	if err != nil {
		return driver.Instance{}, err
	}
	img, err := r.image(ctx, spec)
	if err != nil {
		return driver.Instance{}, driver.WithoutEffect(err)
	}
	net, err := r.network(ctx, spec, launch.Placement)
	if err != nil {
		return driver.Instance{}, driver.WithoutEffect(err)
	}
	if err := r.checkType(ctx, spec, cmp.Or(launch.Placement.InstanceType, spec.InstanceType)); err != nil {
		return driver.Instance{}, err
	}
	out, err := r.api.RunInstances(ctx, runInput(launch, img, net), once)
	if isMismatch(err) {
		return r.afterMismatch(ctx, launch.Token)
	}
	if err != nil {
		return driver.Instance{}, r.unresolved(classify("RunInstances", err))
	}
	if len(out.Instances) != 1 {
		return driver.Instance{}, driver.NewUnknownError("RunInstances", "",
			errors.Errorf("the answer holds %d instances where one was asked for", len(out.Instances)))
	}
	return fromEC2(out.Instances[0]), nil
}

// afterMismatch returns the instance that the token has made already, with other parameters: the image
// search may have a newer result by now, or the bootstrap data may have been renewed.
func (r *region) afterMismatch(ctx context.Context, token string) (driver.Instance, error) {
	found, err := r.byTokens(ctx, []string{token})
	if err != nil {
		return driver.Instance{}, err
	}
	i, ok := found[token]
	if !ok {
		return i, driver.NewNotFoundError("RunInstances", codeMismatch,
			errors.New("the client token was used before and its instance is not listed"))
	}
	return i, nil
}

// runInput is the request. It depends on nothing but its arguments.
func runInput(launch driver.Launch[*infrav1.AWSMachine], img image, net network) *ec2.RunInstancesInput {
	spec := &launch.Object.Spec
	in := &ec2.RunInstancesInput{
		ClientToken:         aws.String(launch.Token),
		MinCount:            aws.Int32(1),
		MaxCount:            aws.Int32(1),
		ImageId:             aws.String(img.id),
		InstanceType:        types.InstanceType(cmp.Or(launch.Placement.InstanceType, spec.InstanceType)),
		NetworkInterfaces:   interfaces(spec, launch.Placement, net),
		BlockDeviceMappings: blockDevices(spec, img.rootDevice),
		MetadataOptions:     metadataOptions(spec.Metadata),
		TagSpecifications:   tagSpecifications(ownershipTags(launch), spec.Spot != nil),
		UserData:            aws.String(base64.StdEncoding.EncodeToString(launch.UserData)),
		// A machine that shuts itself down is terminated, not stopped: nothing starts it again.
		InstanceInitiatedShutdownBehavior: types.ShutdownBehaviorTerminate,
		DisableApiTermination:             spec.TerminationProtection,
	}
	if spec.KeyName != "" {
		in.KeyName = aws.String(spec.KeyName)
	}
	addIdentity(in, spec)
	addMarket(in, spec)
	addHardware(in, spec)
	return in
}

func metadataOptions(m infrav1.InstanceMetadata) *types.InstanceMetadataOptionsRequest {
	options := &types.InstanceMetadataOptionsRequest{
		HttpEndpoint:            types.InstanceMetadataEndpointStateEnabled,
		HttpTokens:              types.HttpTokensStateRequired,
		HttpPutResponseHopLimit: aws.Int32(1),
		// The account's default may enable them, and EC2 would refuse the launch then: with tags in the metadata it takes no
		// tag with a slash, as the marks and the cloud-controller-manager's tag have one.
		InstanceMetadataTags: types.InstanceMetadataTagsStateDisabled,
	}
	if m.Tokens == infrav1.MetadataTokensOptional {
		options.HttpTokens = types.HttpTokensStateOptional
	}
	if m.HopLimit != nil {
		options.HttpPutResponseHopLimit = m.HopLimit
	}
	return options
}

// blockDevices returns the volumes; all are deleted with the instance.
func blockDevices(spec *infrav1.AWSMachineSpec, rootDevice string) []types.BlockDeviceMapping {
	var devices []types.BlockDeviceMapping
	if spec.RootVolume != nil {
		devices = append(devices, blockDevice(rootDevice, spec.RootVolume))
	}
	for i := range spec.Volumes {
		devices = append(devices, blockDevice(spec.Volumes[i].Device, &spec.Volumes[i].Volume))
	}
	return devices
}

func blockDevice(name string, v *infrav1.Volume) types.BlockDeviceMapping {
	ebs := &types.EbsBlockDevice{
		DeleteOnTermination: aws.Bool(true),
		VolumeSize:          v.SizeGiB,
		VolumeType:          types.VolumeType(v.Type),
		Iops:                v.IOPS,
		Throughput:          v.ThroughputMiBps,
		Encrypted:           v.Encrypted,
	}
	if v.SnapshotID != "" {
		ebs.SnapshotId = aws.String(v.SnapshotID)
	}
	if v.KMSKeyID != "" {
		ebs.KmsKeyId = aws.String(v.KMSKeyID)
	}
	return types.BlockDeviceMapping{DeviceName: aws.String(name), Ebs: ebs}
}
