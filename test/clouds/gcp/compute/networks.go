package compute

import (
	"fmt"
	"net/netip"
	"strings"
)

// checkNetworks refuses interfaces in subnetworks that do not exist, and fills in the default network.
func (s *Server) checkNetworks(i *instance) error {
	region := s.catalog.Zones[i.zone]
	if len(i.NetworkInterfaces) == 0 {
		return invalid("resource.networkInterfaces", "", "At least one network interface is required.")
	}
	for n := range i.NetworkInterfaces {
		nic := &i.NetworkInterfaces[n]
		field := fmt.Sprintf("resource.networkInterfaces[%d].subnetwork", n)
		if nic.Subnetwork == "" {
			nic.Subnetwork = "regions/" + region + "/subnetworks/" + base("/"+nic.Network)
			if nic.Network == "" {
				nic.Subnetwork = "regions/" + region + "/subnetworks/default"
			}
		}
		found := s.catalog.subnetwork(i.project.name, nic.Subnetwork)
		switch {
		case found == nil:
			return invalid(field, nic.Subnetwork, "The referenced subnetwork resource cannot be found.")
		case found.Region != region:
			return invalid(field, nic.Subnetwork, "The region of the subnetwork is not that of the instance.")
		case nic.StackType != "" && nic.StackType != "IPV4_ONLY" && found.IPv6Prefix == "":
			return invalid(field, nic.Subnetwork, "The subnetwork has no IPv6 range: its stack type is IPV4_ONLY.")
		case nic.StackType == "IPV6_ONLY":
			return invalid(field, nic.Subnetwork, "IPV6_ONLY is not simulated.")
		}
		for _, alias := range nic.AliasIPRanges {
			if alias.SubnetworkRangeName != "" && !contains(found.SecondaryRanges, alias.SubnetworkRangeName) {
				return invalid(field, alias.SubnetworkRangeName, "The subnetwork has no secondary range of that name.")
			}
			if err := found.checkAlias(alias); err != nil {
				return err
			}
		}
		s.completeNetwork(i, nic, found, n)
	}
	return nil
}

// checkAlias refuses an alias range that is none, or that is outside of the primary range of its subnetwork. Secondary ranges have no
// addresses here.
func (s *Subnetwork) checkAlias(alias AliasIPRange) error {
	const field = "resource.networkInterfaces[0].aliasIpRanges[0].ipCidrRange"
	text := alias.IPCidrRange
	if !strings.Contains(text, "/") {
		text += "/32"
	}
	address, length, _ := strings.Cut(text, "/")
	if address == "" {
		address = s.Prefix + ".0"
	}
	parsed, err := netip.ParsePrefix(address + "/" + length)
	if err != nil {
		return invalid(field, alias.IPCidrRange, "The alias IP range is invalid.")
	}
	whole := netip.MustParsePrefix(s.Prefix + ".0/24")
	if alias.SubnetworkRangeName == "" && (!whole.Contains(parsed.Addr()) || parsed.Bits() < whole.Bits()) {
		return invalid(field, alias.IPCidrRange, "The alias IP range must belong to the specified subnetwork.")
	}
	return nil
}

func (s *Server) completeNetwork(i *instance, nic *NetworkInterface, found *Subnetwork, n int) {
	project := found.Project
	if project == "" {
		project = i.project.name
	}
	nic.Kind, nic.Name, nic.Subnetwork = "compute#networkInterface", fmt.Sprintf("nic%d", n), found.link(i.project.name)
	nic.Network = link("projects/" + project + "/global/networks/" + found.Network)
	if nic.StackType == "" {
		nic.StackType = "IPV4_ONLY"
	}
	for a := range nic.AccessConfigs {
		config := &nic.AccessConfigs[a]
		config.Kind, config.Type = "compute#accessConfig", "ONE_TO_ONE_NAT"
		if config.Name == "" {
			config.Name = "external-nat"
		}
		if config.NetworkTier == "" {
			config.NetworkTier = "PREMIUM"
		}
	}
}

// assignAddresses takes an address of each subnetwork, or reports that there is none left.
func (s *Server) assignAddresses(i *instance) *Failure {
	for n := range i.NetworkInterfaces {
		nic := &i.NetworkInterfaces[n]
		found := s.catalog.subnetwork(i.project.name, nic.Subnetwork)
		key := relative(nic.Subnetwork)
		if i.project.addresses[key] == nil {
			i.project.addresses[key] = map[string]bool{}
		}
		taken := i.project.addresses[key]
		for last := 2; last < 2+found.Addresses && nic.NetworkIP == ""; last++ {
			if address := fmt.Sprintf("%s.%d", found.Prefix, last); !taken[address] {
				taken[address], nic.NetworkIP = true, address
			}
		}
		if nic.NetworkIP == "" {
			return &Failure{Code: "IP_SPACE_EXHAUSTED", Message: fmt.Sprintf("IP space of '%s' is exhausted.", key)}
		}
		last := nic.NetworkIP[strings.LastIndex(nic.NetworkIP, ".")+1:]
		for a := range nic.AccessConfigs {
			nic.AccessConfigs[a].NatIP = "203.0.113." + last
		}
		if nic.StackType != "IPV4_IPV6" {
			continue
		}
		if nic.IPv6AccessType = found.IPv6AccessType; nic.IPv6AccessType == "INTERNAL" {
			nic.IPv6Address = found.IPv6Prefix + ":0:" + last + "::"
		} else {
			nic.IPv6AccessConfigs = []AccessConfig{{Kind: "compute#accessConfig", Type: "DIRECT_IPV6", Name: "external-ipv6",
				ExternalIPv6: found.IPv6Prefix + ":0:" + last + "::", NetworkTier: "PREMIUM"}}
		}
	}
	return nil
}
