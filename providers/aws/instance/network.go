package instance

import (
	"context"
	"slices"
	"strings"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/pkg/errors"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

// network is what a launch needs to know of the subnets and security groups that its spec may search.
type network struct {
	// groups of the primary interface; none for the VPC's default group.
	groups []string
	// subnets of the extra interfaces, in their order.
	subnets []string
}

// network finds them for a launch in a subnet.
func (r *region) network(ctx context.Context, spec *infrav1.AWSMachineSpec, place driver.Placement) (network, error) {
	groups, err := r.securityGroups(ctx, spec, place)
	if err != nil {
		return network{}, err
	}
	net := network{groups: groups}
	for i := range spec.ExtraInterfaces {
		id, err := r.extraSubnet(ctx, spec, i, place)
		if err != nil {
			return network{}, err
		}
		net.subnets = append(net.subnets, id)
	}
	return net, nil
}

// extraSubnet returns the subnet of an extra interface: the first one in the zone of the launch, in the order of their IDs.
func (r *region) extraSubnet(ctx context.Context, spec *infrav1.AWSMachineSpec, i int, place driver.Placement) (string, error) {
	ref := spec.ExtraInterfaces[i].Subnet
	if ref == nil {
		return place.ID, nil
	}
	found, err := r.resolve(ctx, *ref)
	if err != nil {
		return "", err
	}
	here := slices.IndexFunc(found, func(s subnet) bool { return s.zone == place.FailureDomain })
	if here < 0 {
		return "", r.noExtraSubnet(i, []infrav1.SubnetReference{*ref}, []string{place.FailureDomain})
	}
	return found[here].id, nil
}

// whereExtraSubnetsAre leaves those subnets in whose zone each extra interface has one too.
func (r *region) whereExtraSubnetsAre(ctx context.Context, spec *infrav1.AWSMachineSpec, all []subnet) ([]subnet, error) {
	for i, extra := range spec.ExtraInterfaces {
		if extra.Subnet == nil {
			continue
		}
		found, err := r.resolve(ctx, *extra.Subnet)
		if err != nil {
			return nil, err
		}
		here, elsewhere := partition(all, func(s subnet) bool {
			return slices.ContainsFunc(found, func(other subnet) bool { return other.zone == s.zone })
		})
		if len(here) == 0 {
			return nil, r.noExtraSubnet(i, append(slices.Clone(spec.Subnets), *extra.Subnet), zonesOf(elsewhere))
		}
		all = here
	}
	return all, nil
}

func zonesOf(subnets []subnet) []string {
	var zones []string
	for _, s := range subnets {
		zones = append(zones, s.zone)
	}
	slices.Sort(zones)
	return slices.Compact(zones)
}

// noExtraSubnet is the error for an extra interface without a subnet in the zones. Those that are named by ID never change that.
func (r *region) noExtraSubnet(i int, refs []infrav1.SubnetReference, zones []string) error {
	err := errors.Errorf("extraInterfaces[%d].subnet is in none of the zones where the instance may go: %s", i, strings.Join(zones, ", "))
	if slices.ContainsFunc(refs, func(ref infrav1.SubnetReference) bool { return ref.ID == "" }) {
		return r.unresolved(driver.NewUnresolvedError("DescribeSubnets", "", err))
	}
	return driver.NewTerminalError("DescribeSubnets", "", err)
}

// interfaces are the network interfaces of the request, the primary one first. All are deleted with the instance.
func interfaces(spec *infrav1.AWSMachineSpec, place driver.Placement, net network) []types.InstanceNetworkInterfaceSpecification {
	primary := types.InstanceNetworkInterfaceSpecification{
		DeviceIndex:         aws.Int32(0),
		SubnetId:            aws.String(place.ID),
		Groups:              net.groups,
		InterfaceType:       optional(string(spec.InterfaceType)),
		DeleteOnTermination: aws.Bool(true),
	}
	if len(spec.ExtraInterfaces) == 0 { // EC2 takes it for one interface only, and gives several no public address.
		primary.AssociatePublicIpAddress = spec.PublicIP
	}
	if v6 := spec.IPv6; v6 != nil {
		primary.Ipv6AddressCount, primary.Ipv6PrefixCount, primary.PrimaryIpv6 = v6.Count, v6.PrefixCount, v6.Primary
	}
	all := []types.InstanceNetworkInterfaceSpecification{primary}
	devices := deviceIndices(spec.ExtraInterfaces)
	for i, extra := range spec.ExtraInterfaces {
		groups := extra.SecurityGroupIDs
		if len(groups) == 0 {
			groups = net.groups
		}
		all = append(all, types.InstanceNetworkInterfaceSpecification{
			DeviceIndex:         aws.Int32(devices[i]),
			NetworkCardIndex:    aws.Int32(aws.ToInt32(extra.NetworkCardIndex)),
			SubnetId:            aws.String(net.subnets[i]),
			Groups:              groups,
			InterfaceType:       optional(string(extra.InterfaceType)),
			DeleteOnTermination: aws.Bool(true),
		})
	}
	return all
}

// deviceIndices gives each extra interface its place on its card: what the spec says, else the lowest from 1 that is free.
func deviceIndices(extra []infrav1.ExtraInterface) []int32 {
	taken := map[slot]bool{}
	for _, e := range extra {
		if e.DeviceIndex != nil {
			taken[slot{aws.ToInt32(e.NetworkCardIndex), *e.DeviceIndex}] = true
		}
	}
	indices := make([]int32, 0, len(extra))
	for _, e := range extra {
		at := slot{aws.ToInt32(e.NetworkCardIndex), 1}
		if e.DeviceIndex != nil {
			indices = append(indices, *e.DeviceIndex)
			continue
		}
		for taken[at] {
			at.device++
		}
		taken[at] = true
		indices = append(indices, at.device)
	}
	return indices
}

// vpcOf returns the VPC of a subnet.
func (r *region) vpcOf(ctx context.Context, id string) (string, error) {
	found, err := r.resolve(ctx, infrav1.SubnetReference{ID: id})
	if err != nil {
		return "", err
	}
	if len(found) != 1 {
		return "", driver.NewUnknownError("DescribeSubnets", "", errors.Errorf("the answer for subnet %s holds %d subnets", id, len(found)))
	}
	return found[0].vpc, nil
}
