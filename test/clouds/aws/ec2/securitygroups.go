package ec2

import "millwright.dev/test/clouds/simulator"

type describeGroupsReply struct {
	envelope
	NextToken string             `xml:"nextToken,omitempty"`
	Groups    []xmlSecurityGroup `xml:"securityGroupInfo>item"`
}

type xmlSecurityGroup struct {
	ID          string   `xml:"groupId"`
	Name        string   `xml:"groupName"`
	Description string   `xml:"groupDescription"`
	OwnerID     string   `xml:"ownerId"`
	VPCID       string   `xml:"vpcId"`
	Tags        []xmlTag `xml:"tagSet>item"`
}

// groupFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeSecurityGroups.html.
func (s *Server) groupFilters() filterTable[indexed[SecurityGroup]] {
	return filterTable[indexed[SecurityGroup]]{
		"group-id":   field(func(g *SecurityGroup) string { return g.ID }),
		"group-name": field(func(g *SecurityGroup) string { return g.Name }),
		"owner-id":   field(func(*SecurityGroup) string { return s.options.AccountID }),
		"vpc-id":     field(func(g *SecurityGroup) string { return g.VPCID }),
	}
}

func describeSecurityGroups(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	selected, next, err := describe(p, index(s.catalog.SecurityGroups), resource[indexed[SecurityGroup]]{
		idList: "GroupId", prefix: "sg", id: func(g indexed[SecurityGroup]) string { return g.item.ID },
		malformed: "InvalidGroupId.Malformed", missing: "InvalidGroup.NotFound", noun: "security group",
		filters: s.groupFilters(), tags: func(g indexed[SecurityGroup]) map[string]string { return g.item.Tags },
		paging: paging{scope: "groups", min: 5, max: 1000, idsExclude: "GroupId"},
		seq:    func(g indexed[SecurityGroup]) int { return g.index },
	})
	if err != nil {
		return nil, err
	}
	out := &describeGroupsReply{NextToken: next}
	for _, g := range selected {
		out.Groups = append(out.Groups, xmlSecurityGroup{
			ID: g.item.ID, Name: g.item.Name, Description: g.item.Name, OwnerID: s.options.AccountID, VPCID: g.item.VPCID,
			Tags: xmlTags(g.item.Tags),
		})
	}
	return out, nil
}
