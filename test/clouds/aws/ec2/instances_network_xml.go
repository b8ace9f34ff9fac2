package ec2

import "strings"

type xmlInstanceENI struct {
	ID               string           `xml:"networkInterfaceId"`
	SubnetID         string           `xml:"subnetId"`
	VPCID            string           `xml:"vpcId"`
	Description      string           `xml:"description"`
	OwnerID          string           `xml:"ownerId"`
	Status           string           `xml:"status"`
	MAC              string           `xml:"macAddress"`
	PrivateIPAddress string           `xml:"privateIpAddress"`
	PrivateDNSName   string           `xml:"privateDnsName"`
	SourceDestCheck  bool             `xml:"sourceDestCheck"`
	Groups           []xmlGroup       `xml:"groupSet>item"`
	Attachment       xmlENIAttachment `xml:"attachment"`
	Association      *xmlAssociation  `xml:"association"`
	Addresses        []xmlAddress     `xml:"privateIpAddressesSet>item"`
	InterfaceType    string           `xml:"interfaceType"`
	IPv6             []xmlIPv6        `xml:"ipv6AddressesSet>item"`
	IPv6Prefixes     []xmlIPv6Prefix  `xml:"ipv6PrefixSet>item"`
}

type xmlIPv6 struct {
	Address string `xml:"ipv6Address"`
	Primary bool   `xml:"isPrimaryIpv6"`
}

type xmlIPv6Prefix struct {
	Prefix string `xml:"ipv6Prefix"`
}

type xmlENIAttachment struct {
	ID                  string `xml:"attachmentId"`
	InstanceID          string `xml:"instanceId,omitempty"`
	InstanceOwnerID     string `xml:"instanceOwnerId,omitempty"`
	DeviceIndex         int    `xml:"deviceIndex"`
	Status              string `xml:"status"`
	AttachTime          string `xml:"attachTime"`
	DeleteOnTermination bool   `xml:"deleteOnTermination"`
	NetworkCardIndex    int    `xml:"networkCardIndex"`
}

type xmlAssociation struct {
	PublicIP      string `xml:"publicIp"`
	PublicDNSName string `xml:"publicDnsName"`
	IPOwnerID     string `xml:"ipOwnerId"`
}

type xmlAddress struct {
	PrivateIPAddress string          `xml:"privateIpAddress"`
	PrivateDNSName   string          `xml:"privateDnsName"`
	Primary          bool            `xml:"primary"`
	Association      *xmlAssociation `xml:"association"`
}

// describeNetwork fills in what a terminated instance no longer has.
func (s *Server) describeNetwork(i *instance, out *xmlInstance) {
	primary := i.primary()
	if primary == nil {
		return
	}
	out.SubnetID, out.VPCID = primary.subnet.ID, primary.subnet.VPCID
	out.PrivateIPAddress, out.PrivateDNSName = primary.privateIP, s.privateDNS(primary.privateIP)
	if i.state != pending {
		out.PublicIPAddress, out.DNSName = primary.publicIP, s.publicDNS(primary.publicIP)
	}
	if len(primary.ipv6) > 0 {
		out.IPv6Address = primary.ipv6[0]
	}
	out.Groups = xmlGroups(primary.groups)
	for _, n := range i.interfaces {
		out.Interfaces = append(out.Interfaces, xmlInstanceENI{
			ID: n.id, SubnetID: n.subnet.ID, VPCID: n.subnet.VPCID, Description: n.request.description, OwnerID: s.options.AccountID,
			Status: "in-use", MAC: n.mac, PrivateIPAddress: n.privateIP, PrivateDNSName: s.privateDNS(n.privateIP), SourceDestCheck: !n.unchecked,
			IPv6: n.xmlIPv6(), IPv6Prefixes: n.xmlIPv6Prefixes(),
			Groups: xmlGroups(n.groups), Attachment: attachment(n), Association: s.association(n),
			Addresses: s.interfaceAddresses(n), InterfaceType: n.request.kind,
		})
	}
}

func (n *networkInterface) xmlIPv6() []xmlIPv6 {
	out := make([]xmlIPv6, 0, len(n.ipv6))
	for i, address := range n.ipv6 {
		out = append(out, xmlIPv6{Address: address, Primary: i == 0 && n.request.ipv6.primary})
	}
	return out
}

func (n *networkInterface) xmlIPv6Prefixes() []xmlIPv6Prefix {
	out := make([]xmlIPv6Prefix, 0, len(n.ipv6Prefixes))
	for _, prefix := range n.ipv6Prefixes {
		out = append(out, xmlIPv6Prefix{prefix})
	}
	return out
}

// privateDNS is the IP-based name, see
// https://docs.aws.amazon.com/vpc/latest/userguide/vpc-dns.html.
func (s *Server) privateDNS(ip string) string {
	if ip == "" {
		return ""
	}
	return "ip-" + strings.ReplaceAll(ip, ".", "-") + "." + privateDomain(s.options.Region)
}

// privateDomain is the domain of private names in a region.
func privateDomain(region string) string {
	if region == "us-east-1" {
		return "ec2.internal"
	}
	return region + ".compute.internal"
}

func (s *Server) publicDNS(ip string) string {
	if ip == "" {
		return ""
	}
	domain := s.options.Region + ".compute.amazonaws.com"
	if s.options.Region == "us-east-1" {
		domain = "compute-1.amazonaws.com"
	}
	return "ec2-" + strings.ReplaceAll(ip, ".", "-") + "." + domain
}
