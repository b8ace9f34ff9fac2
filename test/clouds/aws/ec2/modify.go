package ec2

import "millwright.dev/test/clouds/simulator"

// modifyInstanceAttribute changes termination protection, or the check of sources and destinations of an instance with one
// interface, see https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifyInstanceAttribute.html.
func modifyInstanceAttribute(s *Server, c *simulator.Exchange, p params) (reply, error) {
	found, err := s.findInstances([]string{p["InstanceId"]})
	if err != nil {
		return nil, err
	}
	i := found[0]
	c.AddResources(i.id)
	protected, err := p.boolean("DisableApiTermination.Value", i.protected)
	if err != nil {
		return nil, err
	}
	check, err := p.boolean("SourceDestCheck.Value", true)
	switch {
	case err != nil:
		return nil, err
	case protected && i.launch.spot:
		return nil, fail("UnsupportedOperation", "Termination protection cannot be enabled for Spot Instances")
	case i.state == terminated || i.state == shuttingDown:
		return nil, fail("IncorrectInstanceState", "The instance '%s' is not in a state in which it can be modified", i.id)
	case p.has("SourceDestCheck.Value") && len(i.interfaces) != 1:
		return nil, fail("InvalidInstanceID",
			"There are multiple interfaces attached to instance '%s'. Please specify an interface ID instead.", i.id)
	case p.dryRun():
		return nil, errDryRun
	}
	i.protected = protected
	if p.has("SourceDestCheck.Value") {
		i.interfaces[0].unchecked = !check
	}
	return &returnReply{Return: true}, nil
}

// modifyNetworkInterfaceAttribute changes the check of sources and destinations of one interface, see
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_ModifyNetworkInterfaceAttribute.html.
func modifyNetworkInterfaceAttribute(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	id := p["NetworkInterfaceId"]
	if !wellFormed(id, "eni") {
		return nil, fail("InvalidNetworkInterfaceId.Malformed", `Invalid id: "%s" (expecting "eni-...")`, id)
	}
	found := find(s.visibleInterfaces(), func(n **networkInterface) bool { return (*n).id == id })
	if found == nil {
		return nil, notFound("InvalidNetworkInterfaceID.NotFound", "networkInterface", []string{id})
	}
	if !p.has("SourceDestCheck.Value") {
		return nil, missingParameter("SourceDestCheck")
	}
	check, err := p.boolean("SourceDestCheck.Value", true)
	if err != nil {
		return nil, err
	}
	if p.dryRun() {
		return nil, errDryRun
	}
	(*found).unchecked = !check
	return &returnReply{Return: true}, nil
}
