package ec2

import (
	"strconv"

	"millwright.dev/test/clouds/simulator"
)

type describeSubnetsReply struct {
	envelope
	NextToken string      `xml:"nextToken,omitempty"`
	Subnets   []xmlSubnet `xml:"subnetSet>item"`
}

type xmlSubnet struct {
	ID                 string         `xml:"subnetId"`
	ARN                string         `xml:"subnetArn"`
	State              string         `xml:"state"`
	VPCID              string         `xml:"vpcId"`
	OwnerID            string         `xml:"ownerId"`
	CIDR               string         `xml:"cidrBlock"`
	FreeAddresses      int            `xml:"availableIpAddressCount"`
	AvailabilityZone   string         `xml:"availabilityZone"`
	AvailabilityZoneID string         `xml:"availabilityZoneId"`
	DefaultForAZ       bool           `xml:"defaultForAz"`
	MapPublicIP        bool           `xml:"mapPublicIpOnLaunch"`
	IPv6               []xmlIPv6Block `xml:"ipv6CidrBlockAssociationSet>item"`
	Tags               []xmlTag       `xml:"tagSet>item"`
}

type xmlIPv6Block struct {
	AssociationID string `xml:"associationId"`
	CIDR          string `xml:"ipv6CidrBlock"`
	State         string `xml:"ipv6CidrBlockState>state"`
}

// indexed gives items of the catalog a sequence for paging: their place in the list.
type indexed[T any] struct {
	item  *T
	index int
}

func index[T any](list []T) []indexed[T] {
	out := make([]indexed[T], 0, len(list))
	for i := range list {
		out = append(out, indexed[T]{&list[i], i})
	}
	return out
}

// field is a filter on one value.
func field[T any](f func(*T) string) func(indexed[T]) []string {
	return func(of indexed[T]) []string {
		if v := f(of.item); v != "" {
			return []string{v}
		}
		return nil
	}
}

// subnetFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSubnets.html.
func (s *Server) subnetFilters() filterTable[indexed[Subnet]] {
	cidr := field(func(n *Subnet) string { return n.CIDR.String() })
	return filterTable[indexed[Subnet]]{
		"availability-zone":          field(func(n *Subnet) string { return n.AvailabilityZone }),
		"availability-zone-id":       field(func(n *Subnet) string { return n.AvailabilityZoneID }),
		"available-ip-address-count": field(func(n *Subnet) string { return strconv.Itoa(s.addresses.free(n)) }),
		"cidr-block":                 cidr,
		"default-for-az":             field(func(*Subnet) string { return "false" }),
		"map-public-ip-on-launch":    field(func(n *Subnet) string { return strconv.FormatBool(n.MapPublicIPOnLaunch) }),
		"owner-id":                   field(func(*Subnet) string { return s.options.AccountID }),
		"state":                      field(func(*Subnet) string { return "available" }),
		"subnet-id":                  field(func(n *Subnet) string { return n.ID }),
		"vpc-id":                     field(func(n *Subnet) string { return n.VPCID }),
	}
}

func describeSubnets(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	selected, next, err := describe(p, index(s.catalog.Subnets), resource[indexed[Subnet]]{
		idList: "SubnetId", id: func(n indexed[Subnet]) string { return n.item.ID },
		missing: "InvalidSubnetID.NotFound", noun: "subnet",
		filters: s.subnetFilters(), tags: func(n indexed[Subnet]) map[string]string { return n.item.Tags },
		paging: paging{scope: "subnets", min: 5, max: 1000}, seq: func(n indexed[Subnet]) int { return n.index },
	})
	if err != nil {
		return nil, err
	}
	out := &describeSubnetsReply{NextToken: next}
	for _, selected := range selected {
		n := selected.item
		var blocks []xmlIPv6Block
		if n.IPv6CIDR.IsValid() {
			blocks = []xmlIPv6Block{{AssociationID: "subnet-cidr-assoc-" + n.ID[len("subnet-"):], CIDR: n.IPv6CIDR.String(), State: "associated"}}
		}
		out.Subnets = append(out.Subnets, xmlSubnet{
			ID: n.ID, ARN: "arn:aws:ec2:" + s.options.Region + ":" + s.options.AccountID + ":subnet/" + n.ID, State: "available",
			VPCID: n.VPCID, OwnerID: s.options.AccountID, CIDR: n.CIDR.String(), FreeAddresses: s.addresses.free(n),
			AvailabilityZone: n.AvailabilityZone, AvailabilityZoneID: n.AvailabilityZoneID, MapPublicIP: n.MapPublicIPOnLaunch,
			IPv6: blocks, Tags: xmlTags(n.Tags),
		})
	}
	return out, nil
}
