package ec2

import (
	"strconv"

	"millwright.dev/test/clouds/simulator"
)

type describeInterfacesReply struct {
	envelope
	NextToken  string         `xml:"nextToken,omitempty"`
	Interfaces []xmlInterface `xml:"networkInterfaceSet>item"`
}

type xmlInterface struct {
	ID                 string            `xml:"networkInterfaceId"`
	SubnetID           string            `xml:"subnetId"`
	VPCID              string            `xml:"vpcId"`
	AvailabilityZone   string            `xml:"availabilityZone"`
	AvailabilityZoneID string            `xml:"availabilityZoneId"`
	Description        string            `xml:"description"`
	OwnerID            string            `xml:"ownerId"`
	RequesterManaged   bool              `xml:"requesterManaged"`
	Status             string            `xml:"status"`
	MAC                string            `xml:"macAddress"`
	PrivateIPAddress   string            `xml:"privateIpAddress"`
	PrivateDNSName     string            `xml:"privateDnsName"`
	SourceDestCheck    bool              `xml:"sourceDestCheck"`
	Groups             []xmlGroup        `xml:"groupSet>item"`
	Attachment         *xmlENIAttachment `xml:"attachment"`
	Association        *xmlAssociation   `xml:"association"`
	Tags               []xmlTag          `xml:"tagSet>item"`
	Addresses          []xmlAddress      `xml:"privateIpAddressesSet>item"`
	InterfaceType      string            `xml:"interfaceType"`
	IPv6               []xmlIPv6         `xml:"ipv6AddressesSet>item"`
	IPv6Prefixes       []xmlIPv6Prefix   `xml:"ipv6PrefixSet>item"`
}

func interfaceSeq(n *networkInterface) int                { return n.seq }
func interfaceTags(n *networkInterface) map[string]string { return n.tags }

func (n *networkInterface) status() string {
	if n.instance == nil {
		return "available"
	}
	return "in-use"
}

func attachment(n *networkInterface) xmlENIAttachment {
	return xmlENIAttachment{
		ID: n.attachmentID, DeviceIndex: n.request.deviceIndex, Status: n.attachment, AttachTime: xmlTime(n.attachTime),
		DeleteOnTermination: n.request.deleteOnTermination, NetworkCardIndex: n.request.card,
	}
}

func (s *Server) association(n *networkInterface) *xmlAssociation {
	if n.publicIP == "" {
		return nil
	}
	return &xmlAssociation{PublicIP: n.publicIP, PublicDNSName: s.publicDNS(n.publicIP), IPOwnerID: "amazon"}
}

func (s *Server) interfaceAddresses(n *networkInterface) []xmlAddress {
	if n.privateIP == "" {
		return nil
	}
	return []xmlAddress{{
		PrivateIPAddress: n.privateIP, PrivateDNSName: s.privateDNS(n.privateIP), Primary: true, Association: s.association(n),
	}}
}

// interfaceFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeNetworkInterfaces.html.
func (s *Server) interfaceFilters() filterTable[*networkInterface] {
	one := func(f func(*networkInterface) string) func(*networkInterface) []string {
		return func(n *networkInterface) []string {
			if v := f(n); v != "" {
				return []string{v}
			}
			return nil
		}
	}
	attached := func(f func(*networkInterface) string) func(*networkInterface) []string {
		return one(func(n *networkInterface) string {
			if n.instance == nil {
				return ""
			}
			return f(n)
		})
	}
	return filterTable[*networkInterface]{
		"attachment.attachment-id": attached(func(n *networkInterface) string { return n.attachmentID }),
		"attachment.delete-on-termination": attached(func(n *networkInterface) string {
			return strconv.FormatBool(n.request.deleteOnTermination)
		}),
		"attachment.device-index": attached(func(n *networkInterface) string { return strconv.Itoa(n.request.deviceIndex) }),
		"attachment.instance-id":  attached(func(n *networkInterface) string { return n.instance.id }),
		"attachment.status":       attached(func(n *networkInterface) string { return n.attachment }),
		"availability-zone":       one(func(n *networkInterface) string { return n.subnet.AvailabilityZone }),
		"description":             one(func(n *networkInterface) string { return n.request.description }),
		"mac-address":             one(func(n *networkInterface) string { return n.mac }),
		"network-interface-id":    one(func(n *networkInterface) string { return n.id }),
		"owner-id":                one(func(*networkInterface) string { return s.options.AccountID }),
		"private-ip-address":      one(func(n *networkInterface) string { return n.privateIP }),
		"status":                  one((*networkInterface).status),
		"subnet-id":               one(func(n *networkInterface) string { return n.subnet.ID }),
		"vpc-id":                  one(func(n *networkInterface) string { return n.subnet.VPCID }),
		"group-id": func(n *networkInterface) []string {
			var ids []string
			for _, g := range n.groups {
				ids = append(ids, g.ID)
			}
			return ids
		},
	}
}

func (s *Server) visibleInterfaces() []*networkInterface {
	now := s.clock.Now()
	var out []*networkInterface
	for _, n := range s.interfaces {
		if n.instance == nil || !now.Before(n.instance.visibleAt) {
			out = append(out, n)
		}
	}
	return out
}

var interfacePaging = paging{scope: "interfaces", min: 5, max: 1000, idsExclude: "NetworkInterfaceId"}

func describeNetworkInterfaces(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	selected, next, err := describe(p, s.visibleInterfaces(), resource[*networkInterface]{
		idList: "NetworkInterfaceId", prefix: "eni", id: func(n *networkInterface) string { return n.id },
		malformed: "InvalidNetworkInterfaceId.Malformed", missing: "InvalidNetworkInterfaceID.NotFound", noun: "networkInterface",
		filters: s.interfaceFilters(), tags: interfaceTags, paging: interfacePaging, seq: interfaceSeq,
	})
	if err != nil {
		return nil, err
	}
	out := &describeInterfacesReply{NextToken: next}
	for _, n := range selected {
		item := xmlInterface{
			ID: n.id, SubnetID: n.subnet.ID, VPCID: n.subnet.VPCID, AvailabilityZone: n.subnet.AvailabilityZone,
			AvailabilityZoneID: n.subnet.AvailabilityZoneID, Description: n.request.description, OwnerID: s.options.AccountID,
			Status: n.status(), MAC: n.mac, PrivateIPAddress: n.privateIP, PrivateDNSName: s.privateDNS(n.privateIP), SourceDestCheck: !n.unchecked,
			IPv6: n.xmlIPv6(), IPv6Prefixes: n.xmlIPv6Prefixes(),
			Groups: xmlGroups(n.groups), Association: s.association(n), Tags: xmlTags(n.tags),
			Addresses: s.interfaceAddresses(n), InterfaceType: n.request.kind,
		}
		if n.instance != nil {
			a := attachment(n)
			a.InstanceID, a.InstanceOwnerID = n.instance.id, s.options.AccountID
			item.Attachment = &a
		}
		out.Interfaces = append(out.Interfaces, item)
	}
	return out, nil
}
