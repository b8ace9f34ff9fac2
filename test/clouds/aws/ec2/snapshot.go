package ec2

import "millwright.dev/test/clouds/aws/simapi"

// Delays are the delays in force.
func (s *Server) Delays() simapi.Delays {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.delays
}

// Instances are all instances of the account, oldest first, those included that describe calls do not
// show yet.
func (s *Server) Instances() []simapi.Instance {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := s.clock.Now()
	s.advance(now)
	out := make([]simapi.Instance, 0, len(s.instances))
	for _, i := range s.instances {
		l := i.launch
		item := simapi.Instance{
			ID: i.id, ReservationID: i.reservationID, ClientToken: l.token, State: i.state, StateReason: i.reason, ImageID: l.image.ID,
			InstanceType: l.kind.Name, AvailabilityZone: l.zone.AvailabilityZone, Spot: l.spot, Tags: copyTags(i.tags),
			LaunchTime: i.launchTime, TerminationTime: i.terminatedAt, UserDataSize: len(l.userData),
			UserDataSHA256: digest(l.userData), Visible: !now.Before(i.visibleAt),
		}
		if n := i.primary(); n != nil {
			item.SubnetID, item.PrivateIPAddress, item.PublicIPAddress = n.subnet.ID, n.privateIP, n.publicIP
		}
		for _, v := range i.volumes {
			item.VolumeIDs = append(item.VolumeIDs, v.id)
		}
		for _, n := range i.interfaces {
			item.NetworkInterfaces = append(item.NetworkInterfaces, n.id)
		}
		out = append(out, item)
	}
	return out
}

// Volumes are all volumes of the account, oldest first.
func (s *Server) Volumes() []simapi.Volume {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clock.Now())
	out := make([]simapi.Volume, 0, len(s.volumes))
	for _, v := range s.volumes {
		d := v.device
		item := simapi.Volume{
			ID: v.id, Device: d.name, Status: v.status, Type: d.kind, SizeGiB: int32(d.size), IOPS: int32(d.iops), // bounded by volumeTypes
			Throughput: int32(d.throughput), Encrypted: d.encrypted, KMSKeyID: d.kmsKey, // bounded by volumeTypes
			DeleteOnTermination: d.deleteOnTermination, Tags: copyTags(v.tags),
		}
		if v.instance != nil {
			item.InstanceID = v.instance.id
		}
		out = append(out, item)
	}
	return out
}

// NetworkInterfaces are all network interfaces of the account, oldest first.
func (s *Server) NetworkInterfaces() []simapi.NetworkInterface {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.advance(s.clock.Now())
	out := make([]simapi.NetworkInterface, 0, len(s.interfaces))
	for _, n := range s.interfaces {
		item := simapi.NetworkInterface{
			ID: n.id, Status: n.status(), SubnetID: n.subnet.ID, PrivateIPAddress: n.privateIP,
			DeleteOnTermination: n.request.deleteOnTermination, Tags: copyTags(n.tags),
		}
		for _, g := range n.groups {
			item.SecurityGroups = append(item.SecurityGroups, g.ID)
		}
		if n.instance != nil {
			item.InstanceID = n.instance.id
		}
		out = append(out, item)
	}
	return out
}
