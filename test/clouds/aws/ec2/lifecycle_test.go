package ec2_test

import (
	"errors"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

func asError(err error, target any) bool { return errors.As(err, target) }

func TestLifeOfAnInstance(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(tagged(types.ResourceTypeInstance, tag("Name", "one")))

	i := a.describe(id)
	a.Expect(i.State.Name).To(Equal(types.InstanceStateNamePending))
	a.Expect(aws.ToInt32(i.State.Code)).To(BeZero())
	a.Expect(aws.ToString(i.PrivateIpAddress)).To(Equal("10.0.0.4"))
	a.Expect(aws.ToString(i.PrivateDnsName)).To(Equal("ip-10-0-0-4.ec2.internal"))
	a.Expect(aws.ToString(i.Placement.AvailabilityZone)).To(Equal("us-east-1a"))
	a.Expect(i.LaunchTime.Equal(a.clock.Now())).To(BeTrue())
	a.Expect(i.BlockDeviceMappings).To(BeEmpty())

	a.clock.Step(pendingDelay)
	i = a.describe(id)
	a.Expect(i.State.Name).To(Equal(types.InstanceStateNameRunning))
	a.Expect(i.StateReason).To(BeNil())
	a.Expect(i.BlockDeviceMappings).To(HaveLen(1))
	a.Expect(i.NetworkInterfaces).To(HaveLen(1))

	out, err := a.client.TerminateInstances(a.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id}})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.TerminatingInstances[0].PreviousState.Name).To(Equal(types.InstanceStateNameRunning))
	a.Expect(out.TerminatingInstances[0].CurrentState.Name).To(Equal(types.InstanceStateNameShuttingDown))
	a.Expect(a.server.Volumes()).To(HaveLen(1))

	a.clock.Step(downDelay)
	i = a.describe(id)
	a.Expect(i.State.Name).To(Equal(types.InstanceStateNameTerminated))
	a.Expect(aws.ToString(i.StateReason.Code)).To(Equal("Client.UserInitiatedShutdown"))
	a.Expect(i.Tags).To(HaveLen(1))
	a.Expect(i.NetworkInterfaces).To(BeEmpty())
	a.Expect(i.SubnetId).To(BeNil())
	a.Expect(a.server.Volumes()).To(BeEmpty())
	a.Expect(a.server.NetworkInterfaces()).To(BeEmpty())

	a.terminate(id) // again: idempotent
	a.clock.Step(time.Hour)
	_, err = a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{id}})
	a.Expect(err).To(haveCode("InvalidInstanceID.NotFound"))
	a.Expect(err.Error()).To(ContainSubstring(id))
}

func TestNewInstancesAreNotFoundAtFirst(t *testing.T) {
	a := newAccount(t, ec2.Options{Delays: simapi.Delays{Consistency: 5 * time.Second}})
	id := a.launch(token("t1"))

	_, err := a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{id}})
	a.Expect(err).To(haveCode("InvalidInstanceID.NotFound"))
	_, err = a.client.TerminateInstances(a.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id}})
	a.Expect(err).To(haveCode("InvalidInstanceID.NotFound"))
	_, err = a.client.CreateTags(a.ctx, &sdk.CreateTagsInput{Resources: []string{id}, Tags: []types.Tag{tag("a", "b")}})
	a.Expect(err).To(haveCode("InvalidInstanceID.NotFound"))
	a.Expect(a.found()).To(BeEmpty())
	a.Expect(a.launch(token("t1"))).To(Equal(id), "a repeated launch is not eventually consistent")
	a.Expect(a.server.Instances()[0].Visible).To(BeFalse())

	a.clock.Step(5 * time.Second)
	a.Expect(a.found()).To(ConsistOf(id))
}

func TestTerminateIsAllOrNothing(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch()
	_, err := a.client.TerminateInstances(a.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id, "i-00000000000000000"}})
	a.Expect(err).To(haveCode("InvalidInstanceID.NotFound"))
	_, err = a.client.TerminateInstances(a.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id, "nonsense"}})
	a.Expect(err).To(haveCode("InvalidInstanceID.Malformed"))
	a.Expect(a.state(id)).To(Equal(types.InstanceStateNamePending))
}

func TestTerminationProtectionHoldsItsZone(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	protected := a.launch(func(in *sdk.RunInstancesInput) { in.DisableApiTermination = aws.Bool(true) })
	same := a.launch()
	other := a.launch(func(in *sdk.RunInstancesInput) { in.SubnetId = aws.String(ec2.DefaultSubnetB) })

	_, err := a.client.TerminateInstances(a.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{same, other, protected}})
	a.Expect(err).To(haveCode("OperationNotPermitted"))
	a.Expect(a.state(protected)).To(Equal(types.InstanceStateNamePending))
	a.Expect(a.state(same)).To(Equal(types.InstanceStateNamePending))
	a.Expect(a.state(other)).To(Equal(types.InstanceStateNameShuttingDown))
}

func TestWhatOutlivesAnInstance(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(func(in *sdk.RunInstancesInput) {
		in.BlockDeviceMappings = []types.BlockDeviceMapping{{
			DeviceName: aws.String("/dev/sdf"),
			Ebs:        &types.EbsBlockDevice{VolumeSize: aws.Int32(20), DeleteOnTermination: aws.Bool(false)},
		}}
	})
	a.Expect(a.server.Volumes()).To(HaveLen(2))
	a.terminate(id)
	a.clock.Step(downDelay)
	left := a.server.Volumes()
	a.Expect(left).To(HaveLen(1))
	a.Expect(left[0].Device).To(Equal("/dev/sdf"))
	a.Expect(left[0].Status).To(Equal("available"))
}

func TestSpotInterruptionAndVanishing(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	spot := a.launch(func(in *sdk.RunInstancesInput) {
		in.InstanceMarketOptions = &types.InstanceMarketOptionsRequest{MarketType: types.MarketTypeSpot}
	})
	plain := a.launch()
	a.Expect(a.describe(spot).InstanceLifecycle).To(Equal(types.InstanceLifecycleTypeSpot))
	a.Expect(a.sim.Interrupt(a.ctx, plain)).NotTo(Succeed())
	a.Expect(a.sim.Interrupt(a.ctx, spot)).To(Succeed())
	a.clock.Step(downDelay)
	i := a.describe(spot)
	a.Expect(i.State.Name).To(Equal(types.InstanceStateNameTerminated))
	a.Expect(aws.ToString(i.StateReason.Code)).To(Equal("Server.SpotInstanceTermination"))

	a.Expect(a.sim.Vanish(a.ctx, plain)).To(Succeed())
	a.Expect(a.found()).To(ConsistOf(spot))
	a.Expect(a.server.Volumes()).To(BeEmpty())
	a.Expect(a.server.NetworkInterfaces()).To(BeEmpty())
	a.Expect(a.sim.Vanish(a.ctx, plain)).NotTo(Succeed())
}
