// Package instance is the Driver for EC2: it turns launches, observations and terminations into calls
// of the EC2 API, and EC2's answers into instances and classes of errors.
package instance

import (
	"context"
	"slices"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/config"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	"github.com/pkg/errors"

	"millwright.dev/providers/aws/apicalls"
)

// API are the calls that the Driver makes: of EC2, as *ec2.Client has them, and GetParameter of Systems Manager.
type API interface {
	RunInstances(context.Context, *ec2.RunInstancesInput, ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error)
	TerminateInstances(context.Context, *ec2.TerminateInstancesInput, ...func(*ec2.Options)) (*ec2.TerminateInstancesOutput, error)
	DescribeInstances(context.Context, *ec2.DescribeInstancesInput, ...func(*ec2.Options)) (*ec2.DescribeInstancesOutput, error)
	DescribeInstanceStatus(
		context.Context, *ec2.DescribeInstanceStatusInput, ...func(*ec2.Options),
	) (*ec2.DescribeInstanceStatusOutput, error)
	DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error)
	DescribeInstanceTypes(context.Context, *ec2.DescribeInstanceTypesInput, ...func(*ec2.Options)) (*ec2.DescribeInstanceTypesOutput, error)
	DescribeSubnets(context.Context, *ec2.DescribeSubnetsInput, ...func(*ec2.Options)) (*ec2.DescribeSubnetsOutput, error)
	DescribeSecurityGroups(context.Context, *ec2.DescribeSecurityGroupsInput, ...func(*ec2.Options)) (*ec2.DescribeSecurityGroupsOutput, error)
	DescribeVolumes(context.Context, *ec2.DescribeVolumesInput, ...func(*ec2.Options)) (*ec2.DescribeVolumesOutput, error)
	DescribeNetworkInterfaces(
		context.Context,
		*ec2.DescribeNetworkInterfacesInput,
		...func(*ec2.Options),
	) (*ec2.DescribeNetworkInterfacesOutput, error)
	CreateTags(context.Context, *ec2.CreateTagsInput, ...func(*ec2.Options)) (*ec2.CreateTagsOutput, error)
	DeleteVolume(context.Context, *ec2.DeleteVolumeInput, ...func(*ec2.Options)) (*ec2.DeleteVolumeOutput, error)
	DeleteNetworkInterface(
		context.Context, *ec2.DeleteNetworkInterfaceInput, ...func(*ec2.Options),
	) (*ec2.DeleteNetworkInterfaceOutput, error)
	ModifyInstanceAttribute(
		context.Context, *ec2.ModifyInstanceAttributeInput, ...func(*ec2.Options),
	) (*ec2.ModifyInstanceAttributeOutput, error)
	ModifyNetworkInterfaceAttribute(
		context.Context,
		*ec2.ModifyNetworkInterfaceAttributeInput,
		...func(*ec2.Options),
	) (*ec2.ModifyNetworkInterfaceAttributeOutput, error)
	GetParameter(context.Context, *ssm.GetParameterInput, ...func(*ssm.Options)) (*ssm.GetParameterOutput, error)
}

// Clients makes the client of a region. It is called once for each region.
type Clients func(ctx context.Context, region string) (API, error)

// DefaultClients makes clients by the SDK's default chain: environment, shared files, web identity,
// the pod's or the instance's role. AWS_ENDPOINT_URL_EC2 and AWS_ENDPOINT_URL_SSM are honoured.
func DefaultClients(ctx context.Context, region string) (API, error) {
	cfg, err := config.LoadDefaultConfig(ctx, config.WithRegion(region))
	if err != nil {
		return nil, errors.Wrapf(err, "loading the AWS configuration for region %s", region)
	}
	return NewClient(cfg), nil
}

// NewClient returns the client of a configuration's region. Its calls are counted and timed, and their errors explain more than
// those of the SDK: that there are no credentials, or that there was no connection.
func NewClient(cfg aws.Config) API {
	cfg.Credentials = recognizable(cfg.Credentials)
	cfg.APIOptions = append(slices.Clone(cfg.APIOptions), apicalls.Measured(classify), connecting)
	return &services{Client: ec2.NewFromConfig(cfg), parameters: ssm.NewFromConfig(cfg)}
}

// services has the calls of all services, of one region.
type services struct {
	*ec2.Client
	parameters *ssm.Client
}

// GetParameter reads a parameter of Systems Manager.
func (c *services) GetParameter(
	ctx context.Context, in *ssm.GetParameterInput, opts ...func(*ssm.Options),
) (*ssm.GetParameterOutput, error) {
	return c.parameters.GetParameter(ctx, in, opts...)
}

// recognizable makes failures to get credentials an error of a type of their own.
func recognizable(provider aws.CredentialsProvider) aws.CredentialsProvider {
	return aws.CredentialsProviderFunc(func(ctx context.Context) (aws.Credentials, error) {
		credentials, err := provider.Retrieve(ctx)
		if err != nil {
			return credentials, &credentialsError{err}
		}
		return credentials, nil
	})
}

// once keeps the SDK from repeating a call by itself: it would hold a worker for seconds, take a lack
// of capacity (an HTTP 500) for a fault of the server, and hide what the Machine is waiting for.
func once(o *ec2.Options) {
	o.Retryer = aws.NopRetryer{}
}
