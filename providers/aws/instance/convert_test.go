package instance

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/shortage"
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
		InstanceId:  aws.String("i-1"),
		ClientToken: aws.String("token"),
		LaunchTime:  &launched,
		State:       &types.InstanceState{Name: types.InstanceStateNameTerminated},
		StateReason: &types.StateReason{
			Code:    aws.String("Server.SpotInstanceTermination"),
			Message: aws.String("Server.SpotInstanceTermination: Spot instance termination"),
		},
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

func TestLaunchesThatWereRefusedLate(t *testing.T) {
	for _, test := range []struct {
		code  string
		state types.InstanceStateName
		want  driver.Class
	}{
		{"Server.InsufficientInstanceCapacity", types.InstanceStateNameTerminated, driver.ClassCapacity},
		{"Server.InsufficientInstanceCapacity", types.InstanceStateNameShuttingDown, driver.ClassCapacity},
		{"Server.InsufficientInstanceCapacity", types.InstanceStateNameStopped, ""}, // it was to be started again
		{"Server.InternalError", types.InstanceStateNameTerminated, ""},
		{"Client.InternalError", types.InstanceStateNameTerminated, ""}, // such as a key that may not be used
		{"Client.UserInitiatedShutdown", types.InstanceStateNameTerminated, ""},
		{"Server.SpotInstanceTermination", types.InstanceStateNameTerminated, ""},
		{"InsufficientInstanceCapacity", types.InstanceStateNameTerminated, ""},
		{"Client.VolumeLimitExceeded", types.InstanceStateNameTerminated, driver.ClassQuota},
		{"Client.VolumeLimitExceeded", types.InstanceStateNameShuttingDown, driver.ClassQuota},
		{"Client.VolumeLimitExceeded", types.InstanceStateNameStopped, ""}, // it was to be started again
		{"VolumeLimitExceeded", types.InstanceStateNameTerminated, ""},
		{"Client.", types.InstanceStateNameTerminated, ""},
		{"", types.InstanceStateNameTerminated, ""},
	} {
		i := fromEC2(types.Instance{State: &types.InstanceState{Name: test.state}, StateReason: &types.StateReason{Code: aws.String(test.code)}})
		NewWithT(t).Expect(i.Refused).To(Equal(test.want), "%s %s", test.code, test.state)
	}
}

// A replacement is launched elsewhere, if it may be.
func TestEndedInstancesThatShowAShortage(t *testing.T) {
	for _, test := range []struct {
		code string
		spot bool
		age  time.Duration
		want bool
	}{
		{"Server.InsufficientInstanceCapacity", false, time.Minute, true},
		{"Server.InsufficientInstanceCapacity", true, time.Minute, true},
		{"Server.InsufficientInstanceCapacity", false, time.Hour, false},
		{"Server.SpotInstanceTermination", true, time.Minute, true},
		{"Server.SpotInstanceTermination", true, time.Hour, false}, // it has run
		{"Client.VolumeLimitExceeded", false, time.Minute, false},  // the same everywhere
		{"Client.UserInitiatedShutdown", true, time.Minute, false},
	} {
		g := NewWithT(t)
		api := &fakeAPI{}
		d, clk := newFake(api)
		ended := types.Instance{
			InstanceType: "m5.large", LaunchTime: aws.Time(clk.Now().Add(-test.age)),
			State: &types.InstanceState{Name: types.InstanceStateNameTerminated}, StateReason: &types.StateReason{Code: aws.String(test.code)},
			Placement: &types.Placement{AvailabilityZone: aws.String("a")},
		}
		if test.spot {
			ended.InstanceLifecycle = types.InstanceLifecycleTypeSpot
		}
		launch := testLaunch()
		if test.spot {
			launch.Object.Spec.Spot = &infrav1.Spot{}
		}
		api.pages = [][]types.Instance{{ended}}
		listed, err := d.List(t.Context(), driver.Scope{Location: "us-east-1"})
		g.Expect(err).NotTo(HaveOccurred())
		candidates, err := d.Places(t.Context(), launch)
		g.Expect(err).NotTo(HaveOccurred())
		memory := shortage.New(clk, 0)
		memory.SawInstances("us-east-1", listed)
		candidates = memory.Mark("us-east-1", candidates)
		g.Expect(candidates[0].FailureDomain).To(Equal("a"))
		g.Expect(!candidates[0].ShortSince.IsZero()).To(Equal(test.want), "%+v", test)
		g.Expect(candidates[1].ShortSince).To(BeZero())
	}
}

// Addresses lack in one subnet, all else in the whole zone.
func TestWhatIsShortOfOneSubnet(t *testing.T) {
	for code, onlyPlace := range map[string]bool{
		"InsufficientFreeAddressesInSubnet": true, "InsufficientAddressCapacity": true, "InsufficientInstanceCapacity": false, "Unsupported": false,
	} {
		err := classify("RunInstances", &smithy.GenericAPIError{Code: code})
		var classified *driver.Error
		g := NewWithT(t)
		g.Expect(errors.As(err, &classified)).To(BeTrue())
		g.Expect(classified.Class).To(Equal(driver.ClassCapacity), code)
		g.Expect(classified.OnlyPlace).To(Equal(onlyPlace), code)
	}
}

// TestAddresses: as the AWS cloud controller manager gives them to the Node.
func TestAddresses(t *testing.T) {
	g := NewWithT(t)
	nic := func(id string, device int32, ip string, v6 ...string) types.InstanceNetworkInterface {
		out := types.InstanceNetworkInterface{
			NetworkInterfaceId: aws.String(id), Status: types.NetworkInterfaceStatusInUse,
			Attachment:         &types.InstanceNetworkInterfaceAttachment{DeviceIndex: aws.Int32(device)},
			PrivateIpAddresses: []types.InstancePrivateIpAddress{{PrivateIpAddress: aws.String(ip)}, {PrivateIpAddress: aws.String(ip + "0")}},
		}
		for _, a := range v6 {
			out.Ipv6Addresses = append(out.Ipv6Addresses, types.InstanceIpv6Address{Ipv6Address: aws.String(a)})
		}
		return out
	}
	detaching, silent := nic("eni-4", 2, "10.0.9.9"), nic("eni-3", 3, "10.0.3.1")
	detaching.Status, silent.Attachment = types.NetworkInterfaceStatusDetaching, nil
	i := types.Instance{
		PrivateIpAddress: aws.String("10.0.1.1"), PrivateDnsName: aws.String("ip-10-0-1-1.ec2.internal"),
		PublicIpAddress: aws.String("1.2.3.4"), PublicDnsName: aws.String("ec2-1-2-3-4.amazonaws.com"),
		NetworkInterfaces: []types.InstanceNetworkInterface{silent, nic("eni-2", 1, "10.0.2.1"), detaching,
			nic("eni-1", 0, "10.0.1.1", "2001:DB8:0:0::1", "2001:db8::2")},
	}
	want := []clusterv1.MachineAddress{
		{Type: clusterv1.MachineInternalIP, Address: "10.0.1.1"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.1.10"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.2.1"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.2.10"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.3.1"},
		{Type: clusterv1.MachineInternalIP, Address: "10.0.3.10"},
		{Type: clusterv1.MachineExternalIP, Address: "1.2.3.4"},
		{Type: clusterv1.MachineInternalDNS, Address: "ip-10-0-1-1.ec2.internal"},
		{Type: clusterv1.MachineHostName, Address: "ip-10-0-1-1.ec2.internal"},
		{Type: clusterv1.MachineExternalDNS, Address: "ec2-1-2-3-4.amazonaws.com"},
		{Type: clusterv1.MachineInternalIP, Address: "2001:db8::1"},
	}
	g.Expect(addresses(i)).To(Equal(want))
	slices.Reverse(i.NetworkInterfaces)
	g.Expect(addresses(i)).To(Equal(want), "in whatever order EC2 lists the interfaces")
	g.Expect(addresses(types.Instance{})).To(BeEmpty())
	g.Expect(addresses(types.Instance{PrivateIpAddress: aws.String("1.2.3.4"), PublicIpAddress: aws.String("1.2.3.4")})).
		To(HaveLen(2), "a VPC may have public addresses of its own: one address is of both kinds then")
	g.Expect(canonical("fe80:::1")).To(Equal("fe80:::1"), "what is none stays as it is")
}
