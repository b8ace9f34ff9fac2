package ec2_test

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
)

func TestClientTokens(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	first := a.launch(token("t1"))
	a.Expect(a.launch(token("t1"))).To(Equal(first))
	a.Expect(a.launch(token("t2"))).NotTo(Equal(first))
	a.Expect(a.found(filter("client-token", "t1"))).To(ConsistOf(first))

	for name, change := range map[string]func(*sdk.RunInstancesInput){
		"user data": func(in *sdk.RunInstancesInput) { in.UserData = aws.String("b3RoZXI=") },
		"type":      func(in *sdk.RunInstancesInput) { in.InstanceType = types.InstanceTypeC5Large },
		"tags":      tagged(types.ResourceTypeInstance, tag("a", "b")),
	} {
		_, err := a.client.RunInstances(a.ctx, launchInput(token("t1"), change))
		a.Expect(err).To(haveCode("IdempotentParameterMismatch"), name)
	}
	a.Expect(a.server.Instances()).To(HaveLen(2))
}

func TestClientTokensAreGoodForOneZone(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	first := a.launch(token("t1"))
	second := a.launch(token("t1"), func(in *sdk.RunInstancesInput) { in.SubnetId = aws.String(ec2.DefaultSubnetB) })
	a.Expect(second).NotTo(Equal(first), "the documentation has the token good once in each zone")
}

func TestClientTokensOfTerminatedInstances(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(token("t1"))
	a.terminate(id)
	a.clock.Step(downDelay)
	out, err := a.client.RunInstances(a.ctx, launchInput(token("t1")))
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(aws.ToString(out.Instances[0].InstanceId)).To(Equal(id))
	a.Expect(out.Instances[0].State.Name).To(Equal(types.InstanceStateNameTerminated))

	a.clock.Step(time.Hour)
	_, err = a.client.RunInstances(a.ctx, launchInput(token("t1")))
	a.Expect(err).To(haveCode("IdempotentInstanceTerminated"))
}

func TestFailedLaunchesLeaveTheTokenFree(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	bad := launchInput(token("t1"), func(in *sdk.RunInstancesInput) { in.SecurityGroupIds = []string{"sg-00000000000000bad"} })
	_, err := a.client.RunInstances(a.ctx, bad)
	a.Expect(err).To(haveCode("InvalidGroup.NotFound"))
	a.launch(token("t1"))
}

func TestWithoutTokenEachLaunchIsNew(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	// The SDK generates a token for each call by itself.
	a.Expect(a.launch()).NotTo(Equal(a.launch()))
	a.Expect(a.lastCall().ClientToken).NotTo(BeEmpty())
}

func TestDryRun(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	dry := func(in *sdk.RunInstancesInput) { in.DryRun = aws.Bool(true) }
	_, err := a.client.RunInstances(a.ctx, launchInput(dry))
	a.Expect(err).To(haveCode("DryRunOperation"))
	_, err = a.client.RunInstances(
		a.ctx,
		launchInput(dry, func(in *sdk.RunInstancesInput) { in.ImageId = aws.String("ami-00000000000000bad") }),
	)
	a.Expect(err).To(haveCode("InvalidAMIID.NotFound"))
	a.Expect(a.server.Instances()).To(BeEmpty())

	id := a.launch()
	_, err = a.client.TerminateInstances(a.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id}, DryRun: aws.Bool(true)})
	a.Expect(err).To(haveCode("DryRunOperation"))
	a.Expect(a.state(id)).To(Equal(types.InstanceStateNamePending))
}
