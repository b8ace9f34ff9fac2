package sandbox

import (
	"context"
	"fmt"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/aws/simclient"
)

func newAWS() *Cloud {
	return &Cloud{
		Name: "aws", Title: "EC2", Machine: "AWSMachine", Deployment: SampleDeployment, SizeField: "instanceType", OtherSize: "m5.xlarge",
		simulatorFile: "bin/ec2-simulator",
		simulatorArgs: func(d Delays) []string {
			return []string{
				"--pending-delay=" + d.Pending.String(), "--shutting-down-delay=" + d.ShuttingDown.String(),
				"--consistency-delay=" + d.Consistency.String(),
			}
		},
		provider:  awsProvider,
		leftovers: awsLeftovers,
	}
}

func awsProvider(s *Sandbox, url string) (args, environment []string) {
	environment = []string{
		"AWS_REGION=us-east-1",
		"AWS_ACCESS_KEY_ID=AKIASANDBOX000000000",
		"AWS_SECRET_ACCESS_KEY=sandbox",
		"AWS_EC2_METADATA_DISABLED=true",
		"AWS_ENDPOINT_URL_EC2=" + url,
	}
	if s.queue != nil {
		args = append(args, "--interruption-queue="+s.queue.URL+"/000000000000/interruptions")
		environment = append(environment, "AWS_ENDPOINT_URL_SQS="+s.queue.URL)
	}
	return args, environment
}

func awsLeftovers(ctx context.Context, c *Cloud) ([]string, error) {
	var left []string
	ec2 := simclient.New(c.URL())
	instances, err := ec2.LiveInstances(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "listing instances")
	}
	for _, instance := range instances {
		left = append(left, fmt.Sprintf("instance %s is %s", instance.ID, instance.State))
	}
	volumes, err := ec2.Volumes(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "listing volumes")
	}
	for _, volume := range volumes {
		left = append(left, fmt.Sprintf("volume %s is %s", volume.ID, volume.Status))
	}
	interfaces, err := ec2.NetworkInterfaces(ctx)
	if err != nil {
		return nil, errors.Wrap(err, "listing network interfaces")
	}
	for _, ni := range interfaces {
		left = append(left, fmt.Sprintf("network interface %s is %s", ni.ID, ni.Status))
	}
	return left, nil
}
