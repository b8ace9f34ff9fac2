package ec2

import (
	"slices"
	"strconv"
)

// interfaceRequest is one network interface of a launch.
type interfaceRequest struct {
	deviceIndex         int
	subnet              *Subnet
	groups              []*SecurityGroup
	description         string
	kind                string
	privateIP           string
	public              bool
	deleteOnTermination bool
	card                int
	ipv6                ipv6Request
}

// groupsPerInterface is the default quota, see https://docs.aws.amazon.com/vpc/latest/userguide/amazon-vpc-limits.html.
const groupsPerInterface = 5

// Types of network interfaces.
const (
	efa     = "efa"
	efaOnly = "efa-only"
)

// readNetwork reads the network of a launch: either the subnet and the security groups of the request
// itself, or a list of network interfaces that name their own; EC2 allows no mixture.
func readNetwork(s *Server, p params, l *launch) error {
	list := p.list("NetworkInterface")
	if len(list) == 0 {
		return readOwnNetwork(s, p, l)
	}
	for name, what := range map[string]string{
		"SubnetId": "subnet ID", "PrivateIpAddress": "private IP address",
	} {
		if p[name] != "" {
			return mixedNetwork(what)
		}
	}
	if len(p.strings("SecurityGroupId"))+len(p.strings("SecurityGroup")) > 0 {
		return mixedNetwork("security groups")
	}
	if len(list) > l.kind.MaxInterfaces {
		return fail("AttachmentLimitExceeded", "Interface count %d exceeds the limit for %s", len(list), l.kind.Name)
	}
	if adapters := len(slices.DeleteFunc(slices.Clone(list), func(item params) bool {
		return !contains([]string{efa, efaOnly}, item["InterfaceType"])
	})); l.kind.EFA > 0 && adapters > l.kind.EFA {
		return fail("AttachmentLimitExceeded", "%d Elastic Fabric Adapters exceed the limit of %d for %s", adapters, l.kind.EFA, l.kind.Name)
	}
	type slot struct{ card, device int }
	seen := map[slot]bool{}
	for _, item := range list {
		r, err := s.readInterface(item, len(list) > 1)
		if err != nil {
			return err
		}
		if err := r.check(l.kind); err != nil {
			return err
		}
		at := slot{r.card, r.deviceIndex}
		if seen[at] {
			return fail("InvalidParameterCombination", "Each network interface requires a unique device index.")
		}
		seen[at] = true
		l.interfaces = append(l.interfaces, r)
	}
	if !seen[slot{0, 0}] {
		return fail("InvalidParameterCombination", "A network interface with device index 0 is required.")
	}
	l.zone = l.interfaces[0].subnet
	for _, r := range l.interfaces {
		if r.subnet.AvailabilityZone != l.zone.AvailabilityZone {
			return fail("InvalidParameterCombination", "Network interfaces must be in the same Availability Zone.")
		}
		if r.primary() {
			l.zone = r.subnet
		}
	}
	return nil
}

func (r interfaceRequest) primary() bool { return r.card == 0 && r.deviceIndex == 0 }

// check holds an interface against what the instance type can have, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/efa.html.
func (r interfaceRequest) check(kind *InstanceType) error {
	switch {
	case !contains([]string{"interface", efa, efaOnly}, r.kind):
		return invalidValue(r.kind, "interfaceType", "Must be interface, efa or efa-only.")
	case r.kind != "interface" && kind.EFA == 0:
		return fail("UnsupportedOperation", "The instance type %s does not support Elastic Fabric Adapters", kind.Name)
	case r.card < 0 || r.card >= kind.cards():
		return invalidValue(strconv.Itoa(r.card), "networkCardIndex", "Not a network card of "+kind.Name+".")
	case r.kind == efaOnly && r.primary():
		return fail("InvalidParameterCombination", "The primary network interface cannot be EFA-only")
	case r.kind == efaOnly && (r.privateIP != "" || r.ipv6 != ipv6Request{}):
		return fail("InvalidParameterCombination", "EFA-only network interfaces do not support IP addresses")
	case r.ipv6.count > kind.AddressesPerInterface:
		return fail("PrivateIpAddressLimitExceeded", "The instance type %s has at most %d addresses on an interface",
			kind.Name, kind.AddressesPerInterface)
	}
	return nil
}

func mixedNetwork(what string) *apiError {
	return fail("InvalidParameterCombination",
		"Network interfaces and an instance-level %s may not be specified on the same request", what)
}

// readOwnNetwork makes the one interface of a launch that lists none.
func readOwnNetwork(s *Server, p params, l *launch) error {
	if p["SubnetId"] == "" {
		return fail("VPCIdNotSpecified", "You have no default VPC in which to carry out the request. Specify a subnet ID.")
	}
	if len(p.strings("SecurityGroup")) > 0 {
		return fail("InvalidParameterCombination", "The parameter groupName cannot be used with the parameter subnet")
	}
	subnet, err := s.readSubnet(p["SubnetId"])
	if err != nil {
		return err
	}
	groups, err := s.readGroups(p.strings("SecurityGroupId"), subnet)
	if err != nil {
		return err
	}
	l.zone = subnet
	l.interfaces = []interfaceRequest{{
		subnet: subnet, groups: groups, kind: "interface", privateIP: p["PrivateIpAddress"],
		public: subnet.MapPublicIPOnLaunch, deleteOnTermination: true,
	}}
	return nil
}

// readInterface reads one NetworkInterface.N. Interfaces of their own making (NetworkInterfaceId) are
// not simulated: there is no action that makes one, so none exists.
func (s *Server) readInterface(p params, several bool) (interfaceRequest, error) {
	r := interfaceRequest{description: p["Description"], kind: p.str("InterfaceType", "interface"), privateIP: p["PrivateIpAddress"]}
	if id := p["NetworkInterfaceId"]; id != "" {
		return r, notFound("InvalidNetworkInterfaceID.NotFound", "networkInterface", []string{id})
	}
	for _, name := range []string{"SecondaryPrivateIpAddressCount", "Ipv4PrefixCount"} {
		if p.has(name) {
			return r, fail("UnsupportedOperation", "The simulator has no %s", name)
		}
	}
	index, err := strconv.Atoi(p["DeviceIndex"])
	if err != nil {
		return r, fail("InvalidParameterCombination", "Each network interface requires a device index.")
	}
	r.deviceIndex = index
	if r.subnet, err = s.readSubnet(p["SubnetId"]); err != nil {
		return r, err
	}
	if r.groups, err = s.readGroups(p.strings("SecurityGroupId"), r.subnet); err != nil {
		return r, err
	}
	if r.card, err = p.number("NetworkCardIndex", 0); err != nil {
		return r, err
	}
	if r.ipv6, err = readIPv6(p, r.subnet); err != nil {
		return r, err
	}
	if p.has("AssociatePublicIpAddress") && several {
		return r, fail("InvalidParameterCombination",
			"The associatePublicIPAddress parameter cannot be specified when launching with multiple network interfaces.")
	}
	if r.public, err = p.boolean("AssociatePublicIpAddress", r.subnet.MapPublicIPOnLaunch && !several); err != nil {
		return r, err
	}
	// The default for an interface created at launch.
	r.deleteOnTermination, err = p.boolean("DeleteOnTermination", true)
	return r, err
}

func (s *Server) readSubnet(id string) (*Subnet, error) {
	if id == "" {
		return nil, missingParameter("SubnetId")
	}
	if subnet := s.catalog.subnet(id); subnet != nil {
		return subnet, nil
	}
	return nil, notFound("InvalidSubnetID.NotFound", "subnet", []string{id})
}

// readGroups resolves security groups; none means the default group of the VPC.
func (s *Server) readGroups(ids []string, subnet *Subnet) ([]*SecurityGroup, error) {
	if len(ids) == 0 {
		if group := s.catalog.defaultSecurityGroup(subnet.VPCID); group != nil {
			return []*SecurityGroup{group}, nil
		}
		return nil, missingParameter("SecurityGroupId")
	}
	if len(ids) > groupsPerInterface {
		return nil, fail("SecurityGroupsPerInterfaceLimitExceeded",
			"You have exceeded the number of security groups that are allowed on a network interface: %d",
			groupsPerInterface)
	}
	var out []*SecurityGroup
	for _, id := range ids {
		if !wellFormed(id, "sg") {
			return nil, fail("InvalidGroupId.Malformed", `Invalid id: "%s" (expecting "sg-...")`, id)
		}
		group := s.catalog.securityGroup(id)
		if group == nil || group.VPCID != subnet.VPCID {
			return nil, fail("InvalidGroup.NotFound", "The security group '%s' does not exist in VPC '%s'", id, subnet.VPCID)
		}
		out = append(out, group)
	}
	return out, nil
}
