package ec2

import (
	"fmt"
	"strconv"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/simulator"
)

type describeInstancesReply struct {
	envelope
	NextToken    string           `xml:"nextToken,omitempty"`
	Reservations []xmlReservation `xml:"reservationSet>item"`
}

type terminateInstancesReply struct {
	envelope
	Changes []xmlStateChange `xml:"instancesSet>item"`
}

type xmlStateChange struct {
	InstanceID string   `xml:"instanceId"`
	Current    xmlState `xml:"currentState"`
	Previous   xmlState `xml:"previousState"`
}

func instanceSeq(i *instance) int                { return i.seq }
func instanceTags(i *instance) map[string]string { return i.tags }

// instanceFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeInstances.html.
func (s *Server) instanceFilters() filterTable[*instance] {
	described := func(f func(xmlInstance) string) func(*instance) []string {
		return ifSet(func(i *instance) string { return f(s.describeInstance(i)) })
	}
	return filterTable[*instance]{
		"architecture":         ifSet(func(i *instance) string { return i.launch.image.Architecture }),
		"availability-zone":    ifSet(func(i *instance) string { return i.launch.zone.AvailabilityZone }),
		"availability-zone-id": ifSet(func(i *instance) string { return i.launch.zone.AvailabilityZoneID }),
		"client-token":         ifSet(func(i *instance) string { return i.launch.token }),
		"image-id":             ifSet(func(i *instance) string { return i.launch.image.ID }),
		"instance-id":          ifSet(func(i *instance) string { return i.id }),
		"instance-lifecycle":   described(func(i xmlInstance) string { return i.Lifecycle }),
		"instance-state-code":  ifSet(func(i *instance) string { return strconv.Itoa(stateCodes[i.state]) }),
		"instance-state-name":  ifSet(func(i *instance) string { return i.state }),
		"instance-type":        ifSet(func(i *instance) string { return i.launch.kind.Name }),
		"key-name":             ifSet(func(i *instance) string { return i.launch.keyName }),
		"launch-time":          ifSet(func(i *instance) string { return xmlTime(i.launchTime) }),
		"owner-id":             ifSet(func(*instance) string { return s.options.AccountID }),
		"private-ip-address":   described(func(i xmlInstance) string { return i.PrivateIPAddress }),
		"private-dns-name":     described(func(i xmlInstance) string { return i.PrivateDNSName }),
		"ip-address":           described(func(i xmlInstance) string { return i.PublicIPAddress }),
		"placement-group-name": ifSet(func(i *instance) string { return i.launch.placement.group }),
		"reservation-id":       ifSet(func(i *instance) string { return i.reservationID }),
		"root-device-name":     ifSet(func(i *instance) string { return i.launch.image.RootDeviceName }),
		"state-reason-code":    ifSet(func(i *instance) string { return i.reason.Code }),
		"subnet-id":            described(func(i xmlInstance) string { return i.SubnetID }),
		"tenancy":              ifSet(func(i *instance) string { return i.launch.placement.tenancy }),
		"vpc-id":               described(func(i xmlInstance) string { return i.VPCID }),
		"iam-instance-profile.arn": described(func(i xmlInstance) string {
			if i.Profile == nil {
				return ""
			}
			return i.Profile.ARN
		}),
		"instance.group-id":                      groupIDs,
		"network-interface.network-interface-id": interfaceIDs,
	}
}

// ifSet is a filter by a value that an instance need not have.
func ifSet(value func(*instance) string) func(*instance) []string {
	return func(i *instance) []string {
		if v := value(i); v != "" {
			return []string{v}
		}
		return nil
	}
}

func interfaceIDs(i *instance) []string {
	var ids []string
	for _, n := range i.interfaces {
		ids = append(ids, n.id)
	}
	return ids
}

func groupIDs(i *instance) []string {
	var ids []string
	if n := i.primary(); n != nil {
		for _, g := range n.groups {
			ids = append(ids, g.ID)
		}
	}
	return ids
}

func (s *Server) visibleInstances() []*instance {
	now := s.clock.Now()
	var out []*instance
	for _, i := range s.instances {
		if !now.Before(i.visibleAt) {
			out = append(out, i)
		}
	}
	return out
}

// findInstances is the instances of the IDs in their order; one malformed or missing ID is an error.
func (s *Server) findInstances(ids []string) ([]*instance, error) {
	byID := map[string]*instance{}
	for _, i := range s.visibleInstances() {
		byID[i.id] = i
	}
	var found []*instance
	var missing []string
	for _, id := range ids {
		if !wellFormed(id, "i") {
			return nil, fail("InvalidInstanceID.Malformed", `Invalid id: "%s"`, id)
		}
		if i, ok := byID[id]; ok {
			found = append(found, i)
		} else {
			missing = append(missing, id)
		}
	}
	if len(missing) > 0 {
		return nil, notFound("InvalidInstanceID.NotFound", "instance", missing)
	}
	return found, nil
}

var instancePaging = paging{scope: "instances", min: 5, max: 1000, idsExclude: "InstanceId"}

func describeInstances(s *Server, c *simulator.Exchange, p params) (reply, error) {
	selected := s.visibleInstances()
	if ids := p.strings("InstanceId"); len(ids) > 0 {
		found, err := s.findInstances(ids)
		c.AddResources(ids...)
		if err != nil {
			return nil, err
		}
		selected = unique(found)
	}
	filters, err := parseFilters(p)
	if err != nil {
		return nil, err
	}
	if selected, err = selectBy(selected, filters, s.instanceFilters(), instanceTags); err != nil {
		return nil, err
	}
	selected, next, err := page(p, instancePaging, selected, instanceSeq)
	if err != nil {
		return nil, err
	}
	if p.dryRun() {
		return nil, errDryRun
	}
	out := &describeInstancesReply{NextToken: next}
	for _, i := range selected {
		c.AddResources(i.id)
		last := len(out.Reservations) - 1
		if last >= 0 && out.Reservations[last].ID == i.reservationID {
			out.Reservations[last].Instances = append(out.Reservations[last].Instances, s.describeInstance(i))
			continue
		}
		out.Reservations = append(out.Reservations, s.describeReservation(i.reservationID, []*instance{i}))
	}
	return out, nil
}

// terminateInstances terminates instances. One unknown ID fails the whole call; a protected instance keeps
// those of its own zone, the others are terminated, and the call still fails: see
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_TerminateInstances.html.
func terminateInstances(s *Server, c *simulator.Exchange, p params) (reply, error) {
	ids := p.strings("InstanceId")
	c.AddResources(ids...)
	switch {
	case len(ids) == 0:
		return nil, missingParameter("InstanceId")
	case len(ids) > 1000:
		return nil, fail("InvalidParameterValue", "At most 1000 instances can be terminated in one request")
	}
	found, err := s.findInstances(ids)
	if err != nil {
		return nil, err
	}
	if p.dryRun() {
		return nil, errDryRun
	}
	protected := map[string]string{}
	for _, i := range found {
		if i.protected && i.state != terminated {
			protected[i.launch.zone.AvailabilityZone] = i.id
		}
	}
	out := &terminateInstancesReply{}
	var refused string
	for _, i := range unique(found) {
		if id, ok := protected[i.launch.zone.AvailabilityZone]; ok {
			refused = id
			continue
		}
		before := i.state
		if before == pending || before == running || before == stopped {
			s.shutDown(i, userInitiated, s.clock.Now())
		}
		out.Changes = append(out.Changes, xmlStateChange{
			InstanceID: i.id,
			Previous:   xmlState{Code: stateCodes[before], Name: before},
			Current:    xmlState{Code: stateCodes[i.state], Name: i.state},
		})
	}
	if refused != "" {
		return nil, fail("OperationNotPermitted", "The instance '%s' may not be terminated. "+
			"Modify its 'disableApiTermination' instance attribute and try again.", refused)
	}
	return out, nil
}

var userInitiated = simapi.StateReason{
	Code: "Client.UserInitiatedShutdown", Message: "Client.UserInitiatedShutdown: User initiated shutdown",
}

// unique drops repeated items and keeps the order of their sequence numbers for paging.
func unique(list []*instance) []*instance {
	seen := map[*instance]bool{}
	var out []*instance
	for _, i := range list {
		if !seen[i] {
			seen[i] = true
			out = append(out, i)
		}
	}
	return out
}

// interrupt reclaims a spot instance.
func (s *Server) interrupt(id string) error {
	found := find(s.instances, func(i **instance) bool { return (*i).id == id })
	if found == nil {
		return fmt.Errorf("no instance %s", id)
	}
	i := *found
	if !i.launch.spot || i.state == shuttingDown || i.state == terminated {
		return fmt.Errorf("instance %s is no live spot instance", id)
	}
	s.shutDown(i, simapi.StateReason{
		Code: "Server.SpotInstanceTermination", Message: "Server.SpotInstanceTermination: Spot instance termination",
	}, s.clock.Now())
	return nil
}

// vanish removes an instance as if it had been terminated long ago.
func (s *Server) vanish(id string) error {
	found := find(s.instances, func(i **instance) bool { return (*i).id == id })
	if found == nil {
		return fmt.Errorf("no instance %s", id)
	}
	s.machines.Stop(id)
	s.forget(*found)
	return nil
}
