package arm

import (
	"net/http"
	"slices"
	"strings"
	"time"
)

// reservedFor is for how long an interface is kept for a machine whose launch was refused.
const reservedFor = 180 * time.Second

func reservedFailure(n *networkInterface) error {
	return fail(http.StatusBadRequest, "NicReservedForAnotherVm", "Nic(s) in request is reserved for another Virtual Machine for 180 "+
		"seconds. Please provide another nic(s) or retry after 180 seconds. Reserved VM: %s", n.reserved)
}

// isFor is true if a request is about the machine of the ID.
func (s *Server) isFor(in *request, id string) bool {
	return key(resourceID(in.subscription, in.group, compute, "virtualMachines", in.name)) == key(id)
}

// putInterface creates an interface, or changes an existing one: there is no If-None-Match, unlike for virtual machines.
func putInterface(s *Server, in *request) (reply, error) {
	var doc nicDocument
	if err := in.decode(&doc); err != nil {
		return reply{}, err
	}
	existing := s.nics[key(resourceID(in.subscription, in.group, network, "networkInterfaces", in.name))]
	if err := s.validNIC(&doc, existing); err != nil {
		return reply{}, err
	}
	config := interfaceConfig{Name: in.name, Properties: interfaceConfigState{
		EnableAcceleratedNetworking: doc.Properties.EnableAcceleratedNetworking, EnableIPForwarding: doc.Properties.EnableIPForwarding,
		NetworkSecurityGroup: doc.Properties.NetworkSecurityGroup, IPConfigurations: doc.Properties.IPConfigurations,
	}}
	_, headers := s.begin(in, network)
	if existing != nil {
		existing.tags, existing.document, existing.failed = doc.Tags, config, in.exchange.LaunchFailure() != nil
		return reply{status: http.StatusOK, headers: headers, body: s.showNIC(existing)}, nil
	}
	subnet := s.options.Catalog.subnet(config.Properties.IPConfigurations[0].Properties.Subnet.ID)
	n := &networkInterface{
		named: s.newNamed(network, "networkInterfaces", in.subscription, in.group, in.name, doc.Tags), document: config, subnet: subnet,
		mac: s.mac(), readyAt: s.clock.Now().Add(s.delays.Interface),
		failed: in.exchange.LaunchFailure() != nil,
	}
	n.ips = s.addressesFor(subnet, config.Properties.IPConfigurations)
	s.nics[key(n.id)] = n
	return reply{status: http.StatusCreated, headers: headers, body: s.showNIC(n)}, nil
}

func (s *Server) validNIC(doc *nicDocument, existing *networkInterface) error {
	switch {
	case !strings.EqualFold(doc.Location, s.options.Catalog.Location):
		return fail(http.StatusBadRequest, "LocationNotAvailableForResourceType", "The provided location '%s' is not available.", doc.Location)
	case len(doc.Properties.IPConfigurations) == 0:
		return fail(http.StatusBadRequest, "MissingIpConfigurations", "Network interface must have one or more IP configurations.")
	case existing != nil && !existing.goneAt.IsZero():
		return fail(http.StatusConflict, "AnotherOperationInProgress", "Another operation on this or dependent resource is in progress.")
	}
	if err := validTags(doc.Tags); err != nil {
		return err
	}
	if g := doc.Properties.NetworkSecurityGroup; g != nil && !s.options.Catalog.has(g.ID) {
		return s.missing(g.ID)
	}
	for _, ip := range doc.Properties.IPConfigurations {
		if err := s.validAddress(ip, existing); err != nil {
			return err
		}
	}
	return nil
}

// validAddress checks one configuration: https://learn.microsoft.com/azure/virtual-network/ip-services/private-ip-addresses.
func (s *Server) validAddress(ip ipConfig, own *networkInterface) error {
	p := ip.Properties
	if p.Subnet == nil || s.options.Catalog.subnet(p.Subnet.ID) == nil {
		id := ""
		if p.Subnet != nil {
			id = p.Subnet.ID
		}
		return s.missing(id)
	}
	subnet := s.options.Catalog.subnet(p.Subnet.ID)
	switch {
	case subnet.Full:
		return fail(http.StatusBadRequest, "SubnetIsFull", "Subnet %s does not have enough capacity for 1 IP addresses.", subnet.ID)
	case !slices.Contains([]string{"", "IPv4", "IPv6"}, p.PrivateIPAddressVersion):
		return badRequest("The value of parameter 'privateIPAddressVersion' is invalid.")
	case p.PrivateIPAddressVersion == "IPv6" && subnet.IPv6 == "":
		return fail(http.StatusBadRequest, "IPv6SubnetNotFound", "Subnet %s has no IPv6 address prefix.", subnet.ID)
	case p.PrivateIPAllocationMethod == "Static" && p.PrivateIPAddress == "":
		return fail(http.StatusBadRequest, "PrivateIPAddressMissing",
			"Private IP address is required when privateIPAllocationMethod is Static in IP configuration %s.", ip.Name)
	case p.PrivateIPAddress != "" && !strings.HasPrefix(p.PrivateIPAddress, subnet.Prefix+"."):
		return fail(http.StatusBadRequest, "PrivateIPAddressNotInSubnet",
			"Private static IP address %s does not belong to the range of subnet prefix.", p.PrivateIPAddress)
	case p.PrivateIPAddress != "":
		if holder := s.holder(subnet, p.PrivateIPAddress); holder != nil && holder != own {
			return fail(http.StatusBadRequest, "PrivateIPAddressIsAllocated",
				"IP configuration %s is using the private IP address %s which is already allocated to resource %s.", ip.Name, p.PrivateIPAddress, holder.id)
		}
	}
	return nil
}

// holder is the interface that has an address of a subnet.
func (s *Server) holder(subnet *Subnet, address string) *networkInterface {
	for _, n := range s.nics {
		if n.subnet.ID == subnet.ID && slices.ContainsFunc(n.ips, func(ip ipState) bool { return ip.address == address }) {
			return n
		}
	}
	return nil
}
