package ec2

type describeStatusReply struct {
	envelope
	NextToken string              `xml:"nextToken,omitempty"`
	Statuses  []xmlInstanceStatus `xml:"instanceStatusSet>item"`
}

type xmlInstanceStatus struct {
	ID               string     `xml:"instanceId"`
	AvailabilityZone string     `xml:"availabilityZone"`
	State            xmlState   `xml:"instanceState"`
	System           xmlSummary `xml:"systemStatus"`
	Instance         xmlSummary `xml:"instanceStatus"`
}

type xmlSummary struct {
	Status string `xml:"status"`
}

// describeInstanceStatus describes running instances, or all of them when asked to; the checks of a
// running instance are always passed.
func describeInstanceStatus(s *Server, c *call, p params) (reply, error) {
	all, err := p.boolean("IncludeAllInstances", false)
	if err != nil {
		return nil, err
	}
	selected := s.visibleInstances()
	if ids := p.strings("InstanceId"); len(ids) > 0 {
		if selected, err = s.findInstances(ids); err != nil {
			return nil, err
		}
		c.instances(ids...)
		selected = unique(selected)
	}
	filters, err := parseFilters(p)
	if err != nil {
		return nil, err
	}
	table := filterTable[*instance]{}
	for _, name := range []string{"availability-zone", "instance-state-code", "instance-state-name"} {
		table[name] = s.instanceFilters()[name]
	}
	if selected, err = selectBy(selected, filters, table, nil); err != nil {
		return nil, err
	}
	var described []*instance
	for _, i := range selected {
		if all || i.state == running {
			described = append(described, i)
		}
	}
	described, next, err := page(p, paging{scope: "status", min: 5, max: 1000, idsExclude: "InstanceId"}, described, instanceSeq)
	if err != nil {
		return nil, err
	}
	if p.dryRun() {
		return nil, errDryRun
	}
	out := &describeStatusReply{NextToken: next}
	for _, i := range described {
		check := "not-applicable"
		if i.state == running {
			check = "ok"
		}
		out.Statuses = append(out.Statuses, xmlInstanceStatus{
			ID: i.id, AvailabilityZone: i.launch.zone.AvailabilityZone, State: xmlState{Code: stateCodes[i.state], Name: i.state},
			System: xmlSummary{check}, Instance: xmlSummary{check},
		})
	}
	return out, nil
}
