package instance

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

func TestStateOf(t *testing.T) {
	for name, want := range map[types.InstanceStateName]driverv1.InstanceState{
		"pending": driverv1.InstancePending, "running": driverv1.InstanceRunning,
		"stopping": driverv1.InstanceStopping, "stopped": driverv1.InstanceStopped,
		"shutting-down": driverv1.InstanceTerminating, "terminated": driverv1.InstanceTerminated,
		"hibernating one day": driverv1.InstancePending,
	} {
		NewWithT(t).Expect(stateOf(&types.InstanceState{Name: name})).To(Equal(want), string(name))
	}
	NewWithT(t).Expect(stateOf(nil)).To(Equal(driverv1.InstancePending))
}

func TestFromEC2(t *testing.T) {
	g := NewWithT(t)
	launched := time.Unix(1000, 0)
	i := fromEC2(types.Instance{
		InstanceId: aws.String("i-1"), ClientToken: aws.String("token"), LaunchTime: &launched,
		State:             &types.InstanceState{Name: types.InstanceStateNameTerminated},
		StateReason:       &types.StateReason{Code: aws.String("Server.SpotInstanceTermination"), Message: aws.String("Server.SpotInstanceTermination: Spot instance termination")},
		InstanceLifecycle: types.InstanceLifecycleTypeSpot,
		Placement:         &types.Placement{AvailabilityZone: aws.String("eu-west-1c")},
		Tags:              []types.Tag{{Key: aws.String(TagOwnerUID), Value: aws.String("uid")}},
	})
	g.Expect(i.ProviderID).To(Equal("aws:///eu-west-1c/i-1"))
	g.Expect(instanceID(i.ProviderID)).To(Equal("i-1"))
	g.Expect(i.Token).To(Equal("token"))
	g.Expect(string(i.OwnerUID)).To(Equal("uid"))
	g.Expect(i.State).To(Equal(driverv1.InstanceTerminated))
	g.Expect(i.Interrupted).To(BeTrue())
	g.Expect(i.Interruptible).To(BeTrue())
	g.Expect(i.StateMessage).To(Equal("Spot instance termination"))
	g.Expect(i.LaunchTime).To(Equal(launched))
	g.Expect(i.FailureDomain).To(Equal("eu-west-1c"))

	user := fromEC2(types.Instance{StateReason: &types.StateReason{Code: aws.String("Client.UserInitiatedShutdown")}})
	g.Expect(user.Interrupted).To(BeFalse())
}

func TestLaunchesThatWereTakenBackForLackOfCapacity(t *testing.T) {
	for _, test := range []struct {
		code  string
		state types.InstanceStateName
		want  bool
	}{
		{"Server.InsufficientInstanceCapacity", types.InstanceStateNameTerminated, true},
		{"Server.InsufficientInstanceCapacity", types.InstanceStateNameShuttingDown, true},
		{"Server.InsufficientInstanceCapacity", types.InstanceStateNameStopped, false}, // it was to be started again
		{"Server.InternalError", types.InstanceStateNameTerminated, false},
		{"InsufficientInstanceCapacity", types.InstanceStateNameTerminated, false},
		{"Client.VolumeLimitExceeded", types.InstanceStateNameTerminated, false},
		{"", types.InstanceStateNameTerminated, false},
	} {
		i := fromEC2(types.Instance{State: &types.InstanceState{Name: test.state}, StateReason: &types.StateReason{Code: aws.String(test.code)}})
		NewWithT(t).Expect(i.Short).To(Equal(test.want), "%s %s", test.code, test.state)
	}
}

func TestShortagesOfZonesAndSubnets(t *testing.T) {
	g := NewWithT(t)
	clk := clocktesting.NewFakePassiveClock(time.Unix(100000, 0))
	s := newShortages(clk)
	one := offering{instanceType: "m5.large", zone: "a", subnet: "subnet-1"}
	other, spot := one, one
	other.subnet, spot.spot = "subnet-2", true
	s.report(one, &smithy.GenericAPIError{Code: "InsufficientFreeAddressesInSubnet"})
	g.Expect(s.at(one)).To(Equal(clk.Now()))
	g.Expect(s.at(other)).To(BeZero(), "addresses are short in one subnet")
	clk.SetTime(clk.Now().Add(time.Second))
	s.report(one, &smithy.GenericAPIError{Code: "InsufficientInstanceCapacity"})
	g.Expect(s.at(other)).To(Equal(clk.Now()), "capacity is short in the zone")
	g.Expect(s.at(one)).To(Equal(clk.Now()))
	g.Expect(s.at(spot)).To(BeZero())
	s.saw(spot.wholeZone(), clk.Now().Add(time.Hour))
	g.Expect(s.at(spot)).To(Equal(clk.Now()), "clocks differ")
	s.saw(spot.wholeZone(), clk.Now().Add(-time.Minute))
	g.Expect(s.at(spot)).To(Equal(clk.Now()), "the latest counts")
	clk.SetTime(clk.Now().Add(shortageTTL))
	g.Expect(s.at(one)).To(BeZero())
	s.saw(one.wholeZone(), clk.Now().Add(-shortageTTL))
	g.Expect(s.since).NotTo(HaveKey(one.wholeZone()), "long ago: not kept")
}

func TestAddresses(t *testing.T) {
	g := NewWithT(t)
	list := addresses(types.Instance{
		PrivateIpAddress: aws.String("10.0.0.1"), PrivateDnsName: aws.String("ip-10-0-0-1.ec2.internal"),
		PublicIpAddress: aws.String("1.2.3.4"), PublicDnsName: aws.String(""),
		NetworkInterfaces: []types.InstanceNetworkInterface{{
			PrivateIpAddresses: []types.InstancePrivateIpAddress{
				{PrivateIpAddress: aws.String("10.0.0.1")}, {PrivateIpAddress: aws.String("10.0.0.2")},
			},
			Ipv6Addresses: []types.InstanceIpv6Address{{Ipv6Address: aws.String("2001:DB8:0:0::1")}},
		}},
	})
	g.Expect(list).To(Equal([]clusterv1.MachineAddress{
		{Type: clusterv1.MachineInternalIP, Address: "10.0.0.1"},
		{Type: clusterv1.MachineInternalDNS, Address: "ip-10-0-0-1.ec2.internal"},
		{Type: clusterv1.MachineExternalIP, Address: "1.2.3.4"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.0.2"},
		{Type: clusterv1.MachineInternalIP, Address: "2001:db8::1"},
	}))
	g.Expect(addresses(types.Instance{})).To(BeEmpty())
}
