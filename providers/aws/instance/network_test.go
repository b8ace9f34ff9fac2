package instance

import (
	"context"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// networkAPI has subnets in a VPC, and security groups.
type networkAPI struct {
	fakeAPI
	vpc      string
	groups   []string
	searches [][]types.Filter
	modified []*ec2.ModifyNetworkInterfaceAttributeInput
	refused  error
}

func (f *networkAPI) DescribeSubnets(
	ctx context.Context,
	in *ec2.DescribeSubnetsInput,
	opts ...func(*ec2.Options),
) (*ec2.DescribeSubnetsOutput, error) {
	if len(in.Filters) > 0 { // All of them, in no order.
		in = &ec2.DescribeSubnetsInput{}
		for id := range f.subnets {
			in.SubnetIds = append(in.SubnetIds, id)
		}
	}
	out, err := f.fakeAPI.DescribeSubnets(ctx, in, opts...)
	if err == nil {
		for i := range out.Subnets {
			out.Subnets[i].VpcId = &f.vpc
		}
	}
	return out, err
}

func (f *networkAPI) DescribeSecurityGroups(
	_ context.Context,
	in *ec2.DescribeSecurityGroupsInput,
	_ ...func(*ec2.Options),
) (*ec2.DescribeSecurityGroupsOutput, error) {
	f.searches = append(f.searches, in.Filters)
	out := &ec2.DescribeSecurityGroupsOutput{}
	for _, id := range f.groups {
		out.SecurityGroups = append(out.SecurityGroups, types.SecurityGroup{GroupId: aws.String(id)})
	}
	return out, nil
}

func (f *networkAPI) ModifyNetworkInterfaceAttribute(
	_ context.Context,
	in *ec2.ModifyNetworkInterfaceAttributeInput,
	_ ...func(*ec2.Options),
) (*ec2.ModifyNetworkInterfaceAttributeOutput, error) {
	f.modified = append(f.modified, in)
	return &ec2.ModifyNetworkInterfaceAttributeOutput{}, f.refused
}

func inRegion(t *testing.T, api *networkAPI) (*Driver, *region) {
	t.Helper()
	if api.subnets == nil {
		api.subnets = map[string]string{"subnet-a": "a", "subnet-b": "b", "subnet-c": "c"}
	}
	d, _ := newFake(&api.fakeAPI)
	d.clients = func(context.Context, string) (API, error) { return api, nil }
	r, err := d.in(t.Context(), driver.Scope{Location: "us-east-1"})
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return d, r
}

var byRole = []infrav1.Filter{{Name: "tag:role", Values: []string{"nodes"}}}

func TestSecurityGroupsAreSearchedInTheVPC(t *testing.T) {
	g := NewWithT(t)
	api := &networkAPI{vpc: "vpc-1", groups: []string{"sg-3", "sg-1"}}
	_, r := inRegion(t, api)
	spec := &infrav1.AWSMachineSpec{
		SecurityGroupIDs:       []string{"sg-2", "sg-1"},
		SecurityGroupSelectors: []infrav1.SecurityGroupSelector{{Filters: byRole}},
	}
	for range 3 {
		net, err := r.network(t.Context(), spec, driver.Placement{ID: "subnet-a", FailureDomain: "a"})
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(net.groups).To(Equal([]string{"sg-1", "sg-2", "sg-3"}), "each once, in an order that stays")
	}
	g.Expect(api.searches).To(HaveLen(1), "asked once")
	g.Expect(api.describes).To(Equal(1), "a subnet's VPC never changes")
	g.Expect(api.searches[0]).To(ContainElement(types.Filter{Name: aws.String("vpc-id"), Values: []string{"vpc-1"}}))

	own := append([]infrav1.Filter{{Name: "vpc-id", Values: []string{"vpc-*"}}}, byRole...)
	g.Expect(groupFilters(own, "vpc-1")).To(HaveLen(2), "the spec's own filter counts")
}

func TestNoSecurityGroupMatches(t *testing.T) {
	g := NewWithT(t)
	_, r := inRegion(t, &networkAPI{vpc: "vpc-1"})
	spec := &infrav1.AWSMachineSpec{SecurityGroupSelectors: []infrav1.SecurityGroupSelector{{Filters: byRole}}}
	_, err := r.network(t.Context(), spec, driver.Placement{ID: "subnet-a"})
	g.Expect(driver.IsUnresolved(err)).To(BeTrue())
	g.Expect(err).To(MatchError(ContainSubstring("no security group matches the filters tag:role=nodes, vpc-id=vpc-1 (looked up in region us-east-1")))
}

func TestMachinesGoWhereTheirExtraInterfacesCan(t *testing.T) {
	g := NewWithT(t)
	d, r := inRegion(
		t,
		&networkAPI{
			fakeAPI: fakeAPI{subnets: map[string]string{"subnet-a": "a", "subnet-b": "b", "subnet-c": "c", "subnet-z": "b", "subnet-y": "b"}},
		},
	)
	launch := testLaunch(func(s *infrav1.AWSMachineSpec) {
		s.ExtraInterfaces = []infrav1.ExtraInterface{{Subnet: &infrav1.SubnetReference{ID: "subnet-z"}}, {}}
	})
	places, err := d.Places(t.Context(), launch)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(places).To(HaveLen(1))
	g.Expect(places[0].ID).To(Equal("subnet-b"))
	net, err := r.network(t.Context(), &launch.Object.Spec, places[0].Placement)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(net.subnets).To(Equal([]string{"subnet-z", "subnet-b"}), "the second one is in the instance's subnet")

	search := &infrav1.SubnetReference{Filters: byRole}
	launch.Object.Spec.ExtraInterfaces = []infrav1.ExtraInterface{{Subnet: search}}
	net, err = r.network(t.Context(), &launch.Object.Spec, places[0].Placement)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(net.subnets).To(Equal([]string{"subnet-b"}), "the first of the zone")
}

// A subnet that is not there holds up no launch that may go elsewhere.
func TestTheSubnetsThatAreThere(t *testing.T) {
	g := NewWithT(t)
	d, _ := inRegion(t, &networkAPI{fakeAPI: fakeAPI{subnets: map[string]string{"subnet-a": "a"}}})
	launch := testLaunch(func(s *infrav1.AWSMachineSpec) {
		s.Subnets = []infrav1.SubnetReference{{ID: "subnet-x"}, {ID: "subnet-a"}}
	})
	places, err := d.Places(t.Context(), launch)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(places).To(HaveLen(1))
	g.Expect(places[0].ID).To(Equal("subnet-a"))

	launch.FailureDomain = "b"
	_, err = d.Places(t.Context(), launch)
	g.Expect(driver.IsUnresolved(err)).To(BeTrue(), "the other one may come, and be there")
	g.Expect(err).To(MatchError(ContainSubstring("subnet-x")))
}

func TestNoSubnetForAnExtraInterface(t *testing.T) {
	g := NewWithT(t)
	d, r := inRegion(
		t,
		&networkAPI{fakeAPI: fakeAPI{subnets: map[string]string{"subnet-a": "a", "subnet-b": "b", "subnet-c": "c", "subnet-z": "d"}}},
	)
	elsewhere := testLaunch(func(s *infrav1.AWSMachineSpec) {
		s.ExtraInterfaces = []infrav1.ExtraInterface{{}, {Subnet: &infrav1.SubnetReference{ID: "subnet-z"}}}
	})
	_, err := d.Places(t.Context(), elsewhere)
	g.Expect(driver.IsTerminal(err)).To(BeTrue(), "IDs never move")
	g.Expect(err).To(MatchError(ContainSubstring("extraInterfaces[1].subnet is in none of the zones where the instance may go: a, b, c")))
	_, err = r.network(t.Context(), &elsewhere.Object.Spec, driver.Placement{ID: "subnet-a", FailureDomain: "a"})
	g.Expect(driver.IsTerminal(err)).To(BeTrue())
	elsewhere.Object.Spec.Subnets = []infrav1.SubnetReference{{Filters: byRole}}
	elsewhere.FailureDomain = "a"
	_, err = d.Places(t.Context(), elsewhere)
	g.Expect(driver.IsUnresolved(err)).To(BeTrue(), "a search may find another one")
}

func TestInterfaces(t *testing.T) {
	g := NewWithT(t)
	spec := &infrav1.AWSMachineSpec{
		PublicIP: aws.Bool(false), InterfaceType: infrav1.InterfaceTypeEFA,
		IPv6: &infrav1.IPv6{Count: aws.Int32(1), Primary: aws.Bool(true), PrefixCount: aws.Int32(2)},
		ExtraInterfaces: []infrav1.ExtraInterface{
			{InterfaceType: infrav1.InterfaceTypeEFAOnly, NetworkCardIndex: aws.Int32(1)},
			{SecurityGroupIDs: []string{"sg-2"}}, {DeviceIndex: aws.Int32(1)}, {NetworkCardIndex: aws.Int32(1)},
		},
	}
	net := network{groups: []string{"sg-1"}, subnets: []string{"s-1", "s-2", "s-3", "s-4"}}
	got := interfaces(spec, driver.Placement{ID: "s-0"}, net)
	g.Expect(got).To(HaveLen(5))
	g.Expect(got[0].AssociatePublicIpAddress).To(BeNil(), "EC2 refuses it beside other interfaces, whatever it is")
	g.Expect(*got[0].InterfaceType).To(Equal("efa"))
	g.Expect(*got[0].Ipv6AddressCount).To(BeEquivalentTo(1))
	g.Expect(*got[0].PrimaryIpv6).To(BeTrue())
	g.Expect(*got[0].Ipv6PrefixCount).To(BeEquivalentTo(2))
	type slot struct {
		card, device  int32
		subnet, group string
	}
	var slots []slot
	for _, nic := range got[1:] {
		g.Expect(*nic.DeleteOnTermination).To(BeTrue())
		slots = append(slots, slot{*nic.NetworkCardIndex, *nic.DeviceIndex, *nic.SubnetId, nic.Groups[0]})
	}
	g.Expect(slots).To(Equal([]slot{{1, 1, "s-1", "sg-1"}, {0, 2, "s-2", "sg-2"}, {0, 1, "s-3", "sg-1"}, {1, 2, "s-4", "sg-1"}}))
	g.Expect(*got[1].InterfaceType).To(Equal("efa-only"))
	g.Expect(got[2].InterfaceType).To(BeNil())

	size := sizeOf(model{cpus: 1, memoryMiB: 1}, spec, 0)
	adapters := size.Capacity[corev1.ResourceName("vpc.amazonaws.com/efa")]
	g.Expect(adapters.Value()).To(BeEquivalentTo(2))
}
