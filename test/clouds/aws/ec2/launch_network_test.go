package ec2_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
)

type nic = types.InstanceNetworkInterfaceSpecification

// withInterfaces replaces the network of a launch by interfaces: the primary one, changed by the first change, and one for each other.
func withInterfaces(changes ...func(*nic)) func(*sdk.RunInstancesInput) {
	return func(in *sdk.RunInstancesInput) {
		in.SubnetId, in.SecurityGroupIds = nil, nil
		for i, change := range changes {
			n := nic{DeviceIndex: aws.Int32(int32(i)), SubnetId: aws.String(ec2.DefaultSubnetA), Groups: []string{ec2.DefaultSecurityGroup}}
			change(&n)
			in.NetworkInterfaces = append(in.NetworkInterfaces, n)
		}
	}
}

func plain(*nic) {}

func ofKind(kind string) func(*nic) { return func(n *nic) { n.InterfaceType = aws.String(kind) } }

func TestRefusedNetworks(t *testing.T) {
	onCard := func(card int32) func(*nic) { return func(n *nic) { n.NetworkCardIndex = aws.Int32(card) } }
	withIPv6 := func(n *nic) { n.Ipv6AddressCount = aws.Int32(1) }
	type changes = []func(*sdk.RunInstancesInput)
	for _, test := range []struct {
		name, code string
		changes    changes
	}{
		{"EFA of a type without", "UnsupportedOperation", changes{withInterfaces(ofKind("efa"))}},
		{"unknown kind", "InvalidParameterValue", changes{withInterfaces(ofKind("trunk"))}},
		{"card that the type does not have", "InvalidParameterValue", changes{withInterfaces(plain, onCard(1))}},
		{"primary without addresses", "InvalidParameterCombination", changes{ofType("p5.48xlarge"), withInterfaces(ofKind("efa-only"))}},
		{"one place twice", "InvalidParameterCombination", changes{withInterfaces(plain, func(n *nic) { n.DeviceIndex = aws.Int32(0) })}},
		{"EFA-only with an address", "InvalidParameterCombination", changes{ofType("p5.48xlarge"), withInterfaces(plain, func(n *nic) {
			ofKind("efa-only")(n)
			withIPv6(n)
		})}},
		{"another zone", "InvalidParameterCombination", changes{withInterfaces(plain, func(n *nic) { n.SubnetId = aws.String(ec2.DefaultSubnetB) })}},
		{"public address with several", "InvalidParameterCombination", changes{withInterfaces(func(n *nic) { n.AssociatePublicIpAddress = aws.Bool(false) }, plain)}},
		{"primary IPv6 address without one", "InvalidParameterCombination", changes{withInterfaces(func(n *nic) { n.PrimaryIpv6 = aws.Bool(true) })}},
		{"too many addresses", "PrivateIpAddressLimitExceeded", changes{withInterfaces(func(n *nic) { n.Ipv6AddressCount = aws.Int32(11) })}},
	} {
		t.Run(test.name, func(t *testing.T) {
			a := newAccount(t, ec2.Options{})
			_, err := a.client.RunInstances(a.ctx, launchInput(test.changes...))
			a.Expect(err).To(haveCode(test.code))
			a.Expect(a.server.NetworkInterfaces()).To(BeEmpty())
		})
	}
	t.Run("no IPv6 block", func(t *testing.T) {
		catalog := ec2.DefaultCatalog("us-east-1")
		catalog.Subnets[0] = ec2.Subnet{
			ID: catalog.Subnets[0].ID, VPCID: ec2.DefaultVPC, AvailabilityZone: "us-east-1a", CIDR: catalog.Subnets[0].CIDR,
		}
		a := newAccount(t, ec2.Options{Catalog: catalog})
		_, err := a.client.RunInstances(a.ctx, launchInput(withInterfaces(withIPv6)))
		a.Expect(err).To(haveCode("InvalidParameterValue"))
	})
}

func TestManyInterfacesAndIPv6(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(ofType("p5.48xlarge"), withInterfaces(
		func(n *nic) {
			n.Ipv6AddressCount, n.PrimaryIpv6, n.Ipv6PrefixCount, n.InterfaceType = aws.Int32(2), aws.Bool(true), aws.Int32(1), aws.String("efa")
		},
		func(n *nic) { n.InterfaceType, n.NetworkCardIndex = aws.String("efa-only"), aws.Int32(1) },
		plain,
	))
	a.clock.Step(pendingDelay)
	i := a.describe(id)
	a.Expect(aws.ToString(i.Ipv6Address)).To(Equal("2001:db8:0:a::1"))
	a.Expect(i.NetworkInterfaces).To(HaveLen(3))
	primary, fabric, last := i.NetworkInterfaces[0], i.NetworkInterfaces[1], i.NetworkInterfaces[2]
	a.Expect(primary.Ipv6Addresses).To(HaveLen(2))
	a.Expect(aws.ToBool(primary.Ipv6Addresses[0].IsPrimaryIpv6)).To(BeTrue())
	a.Expect(aws.ToBool(primary.Ipv6Addresses[1].IsPrimaryIpv6)).To(BeFalse())
	a.Expect(aws.ToString(primary.Ipv6Prefixes[0].Ipv6Prefix)).To(Equal("2001:db8:0:a:8003::/80"))
	a.Expect(fabric.PrivateIpAddress).To(Or(BeNil(), HaveValue(BeEmpty())))
	a.Expect(aws.ToInt32(fabric.Attachment.NetworkCardIndex)).To(BeEquivalentTo(1))
	a.Expect(aws.ToString(fabric.InterfaceType)).To(Equal("efa-only"))
	a.Expect(aws.ToString(last.PrivateIpAddress)).To(Equal("10.0.0.5"))
	a.terminate(id)
	a.clock.Step(downDelay)
	a.Expect(a.server.NetworkInterfaces()).To(BeEmpty())
}

func TestSecurityGroups(t *testing.T) {
	catalog := ec2.DefaultCatalog("us-east-1")
	catalog.SecurityGroups[1].Tags = map[string]string{"role": "nodes"}
	a := newAccount(t, ec2.Options{Catalog: catalog})
	out, err := a.client.DescribeSecurityGroups(a.ctx, &sdk.DescribeSecurityGroupsInput{
		Filters: []types.Filter{filter("tag:role", "nodes"), filter("vpc-id", ec2.DefaultVPC)},
	})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.SecurityGroups).To(HaveLen(1))
	a.Expect(aws.ToString(out.SecurityGroups[0].GroupId)).To(Equal(ec2.DefaultSecurityGroup))
	_, err = a.client.DescribeSecurityGroups(a.ctx, &sdk.DescribeSecurityGroupsInput{GroupIds: []string{"sg-00000000000000bad"}})
	a.Expect(err).To(haveCode("InvalidGroup.NotFound"))
}

func TestAttributesAreModified(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(func(in *sdk.RunInstancesInput) { in.DisableApiTermination = aws.Bool(true) })
	off := &types.AttributeBooleanValue{Value: aws.Bool(false)}
	nicID := a.describe(id).NetworkInterfaces[0].NetworkInterfaceId
	a.Expect(aws.ToBool(a.describe(id).SourceDestCheck)).To(BeTrue())
	for range 2 {
		_, err := a.client.ModifyNetworkInterfaceAttribute(
			a.ctx,
			&sdk.ModifyNetworkInterfaceAttributeInput{NetworkInterfaceId: nicID, SourceDestCheck: off},
		)
		a.Expect(err).NotTo(HaveOccurred())
	}
	a.Expect(aws.ToBool(a.describe(id).NetworkInterfaces[0].SourceDestCheck)).To(BeFalse())
	a.Expect(aws.ToBool(a.describe(id).SourceDestCheck)).To(BeFalse())
	_, err := a.client.ModifyNetworkInterfaceAttribute(a.ctx, &sdk.ModifyNetworkInterfaceAttributeInput{
		NetworkInterfaceId: aws.String("eni-00000000000000bad"), SourceDestCheck: off,
	})
	a.Expect(err).To(haveCode("InvalidNetworkInterfaceID.NotFound"))

	_, err = a.client.TerminateInstances(a.ctx, &sdk.TerminateInstancesInput{InstanceIds: []string{id}})
	a.Expect(err).To(haveCode("OperationNotPermitted"))
	_, err = a.client.ModifyInstanceAttribute(a.ctx, &sdk.ModifyInstanceAttributeInput{InstanceId: &id, DisableApiTermination: off})
	a.Expect(err).NotTo(HaveOccurred())
	a.terminate(id)
	_, err = a.client.ModifyInstanceAttribute(a.ctx, &sdk.ModifyInstanceAttributeInput{InstanceId: &id, DisableApiTermination: off})
	a.Expect(err).To(haveCode("IncorrectInstanceState"))
	several := a.launch(withInterfaces(plain, plain))
	_, err = a.client.ModifyInstanceAttribute(a.ctx, &sdk.ModifyInstanceAttributeInput{InstanceId: &several, SourceDestCheck: off})
	a.Expect(err).To(haveCode("InvalidInstanceID"))
}
