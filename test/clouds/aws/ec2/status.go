package ec2

import "millwright.dev/test/clouds/simulator"

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
	EBS              xmlSummary `xml:"attachedEbsStatus"`
	Events           []xmlEvent `xml:"eventsSet>item"`
}

type xmlEvent struct {
	Code        string `xml:"code"`
	Description string `xml:"description"`
	NotBefore   string `xml:"notBefore"`
}

type xmlSummary struct {
	Status string `xml:"status"`
}

// check returns the status of a check of an instance.
func check(i *instance, impaired bool) string {
	switch {
	case i.state != running:
		return "not-applicable"
	case impaired:
		return "impaired"
	}
	return "ok"
}

// statusFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstanceStatus.html.
func (s *Server) statusFilters() filterTable[*instance] {
	table := filterTable[*instance]{
		"instance-status.status":     func(i *instance) []string { return []string{check(i, i.checks.Instance)} },
		"system-status.status":       func(i *instance) []string { return []string{check(i, i.checks.System)} },
		"attached-ebs-status.status": func(i *instance) []string { return []string{check(i, i.checks.EBS)} },
		"event.code": func(i *instance) []string {
			if i.checks.Event == "" {
				return nil
			}
			return []string{i.checks.Event}
		},
	}
	for _, name := range []string{"availability-zone", "instance-state-code", "instance-state-name"} {
		table[name] = s.instanceFilters()[name]
	}
	return table
}

// describeInstanceStatus describes running instances, or all of them when asked to.
func describeInstanceStatus(s *Server, c *simulator.Exchange, p params) (reply, error) {
	all, err := p.boolean("IncludeAllInstances", false)
	if err != nil {
		return nil, err
	}
	selected := s.visibleInstances()
	if ids := p.strings("InstanceId"); len(ids) > 0 {
		if selected, err = s.findInstances(ids); err != nil {
			return nil, err
		}
		c.AddResources(ids...)
		selected = unique(selected)
	}
	filters, err := parseFilters(p)
	if err != nil {
		return nil, err
	}
	if selected, err = selectBy(selected, filters, s.statusFilters(), nil); err != nil {
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
		status := xmlInstanceStatus{
			ID: i.id, AvailabilityZone: i.launch.zone.AvailabilityZone, State: xmlState{Code: stateCodes[i.state], Name: i.state},
			System: xmlSummary{check(i, i.checks.System)}, Instance: xmlSummary{check(i, i.checks.Instance)},
			EBS: xmlSummary{check(i, i.checks.EBS)},
		}
		if e := i.checks.Event; e != "" {
			status.Events = []xmlEvent{{Code: e, Description: "scheduled by a test", NotBefore: xmlTime(i.checks.NotBefore)}}
		}
		out.Statuses = append(out.Statuses, status)
	}
	return out, nil
}
