package ec2

import "millwright.dev/test/clouds/simulator"

type describeVPCsReply struct {
	envelope
	NextToken string   `xml:"nextToken,omitempty"`
	VPCs      []xmlVPC `xml:"vpcSet>item"`
}

type xmlVPC struct {
	ID            string   `xml:"vpcId"`
	OwnerID       string   `xml:"ownerId"`
	State         string   `xml:"state"`
	CIDR          string   `xml:"cidrBlock"`
	DHCPOptionsID string   `xml:"dhcpOptionsId"`
	Tenancy       string   `xml:"instanceTenancy"`
	Default       bool     `xml:"isDefault"`
	Tags          []xmlTag `xml:"tagSet>item"`
}

// vpcFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVpcs.html.
func (s *Server) vpcFilters() filterTable[indexed[VPC]] {
	return filterTable[indexed[VPC]]{
		"cidr":            field(func(v *VPC) string { return v.CIDR.String() }),
		"dhcp-options-id": field(func(v *VPC) string { return v.DHCPOptionsID }),
		"is-default":      field(func(*VPC) string { return "false" }),
		"owner-id":        field(func(*VPC) string { return s.options.AccountID }),
		"state":           field(func(*VPC) string { return "available" }),
		"vpc-id":          field(func(v *VPC) string { return v.ID }),
	}
}

func describeVPCs(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	selected, next, err := describe(p, index(s.catalog.VPCs), resource[indexed[VPC]]{
		idList: "VpcId", id: func(v indexed[VPC]) string { return v.item.ID }, missing: "InvalidVpcID.NotFound", noun: "vpc",
		filters: s.vpcFilters(), tags: func(v indexed[VPC]) map[string]string { return v.item.Tags },
		paging: paging{scope: "vpcs", min: 5, max: 1000, idsExclude: "VpcId"}, seq: func(v indexed[VPC]) int { return v.index },
	})
	if err != nil {
		return nil, err
	}
	out := &describeVPCsReply{NextToken: next}
	for _, v := range selected {
		out.VPCs = append(out.VPCs, xmlVPC{
			ID: v.item.ID, OwnerID: s.options.AccountID, State: "available", CIDR: v.item.CIDR.String(), DHCPOptionsID: v.item.DHCPOptionsID,
			Tenancy: "default", Tags: xmlTags(v.item.Tags),
		})
	}
	return out, nil
}

type describeDHCPOptionsReply struct {
	envelope
	NextToken string           `xml:"nextToken,omitempty"`
	Options   []xmlDHCPOptions `xml:"dhcpOptionsSet>item"`
}

type xmlDHCPOptions struct {
	ID             string                 `xml:"dhcpOptionsId"`
	OwnerID        string                 `xml:"ownerId"`
	Configurations []xmlDHCPConfiguration `xml:"dhcpConfigurationSet>item"`
	Tags           []xmlTag               `xml:"tagSet>item"`
}

type xmlDHCPConfiguration struct {
	Key    string   `xml:"key"`
	Values []string `xml:"valueSet>item>value"`
}

// dhcpFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeDhcpOptions.html.
func (s *Server) dhcpFilters() filterTable[indexed[DHCPOptions]] {
	return filterTable[indexed[DHCPOptions]]{
		"dhcp-options-id": field(func(d *DHCPOptions) string { return d.ID }),
		"owner-id":        field(func(*DHCPOptions) string { return s.options.AccountID }),
	}
}

func describeDHCPOptions(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	selected, next, err := describe(p, index(s.catalog.DHCPOptions), resource[indexed[DHCPOptions]]{
		idList: "DhcpOptionsId", id: func(d indexed[DHCPOptions]) string { return d.item.ID },
		missing: "InvalidDhcpOptionID.NotFound", noun: "dhcpOption",
		filters: s.dhcpFilters(), tags: func(d indexed[DHCPOptions]) map[string]string { return d.item.Tags },
		paging: paging{scope: "dhcp", min: 5, max: 1000, idsExclude: "DhcpOptionsId"}, seq: func(d indexed[DHCPOptions]) int { return d.index },
	})
	if err != nil {
		return nil, err
	}
	out := &describeDHCPOptionsReply{NextToken: next}
	for _, d := range selected {
		out.Options = append(out.Options, xmlDHCPOptions{
			ID: d.item.ID, OwnerID: s.options.AccountID, Tags: xmlTags(d.item.Tags),
			Configurations: []xmlDHCPConfiguration{
				{Key: "domain-name", Values: []string{d.item.DomainName}},
				{Key: "domain-name-servers", Values: []string{"AmazonProvidedDNS"}},
			},
		})
	}
	return out, nil
}
