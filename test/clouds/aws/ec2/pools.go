package ec2

// Pool is how many instances of a type have room in a zone, those that run there included. Where the catalog has none for a type, a
// zone and a purchase option, there is room for all. A Pool may change at any time: see Server.ChangeCatalog.
type Pool struct {
	InstanceType, AvailabilityZone string
	// Spot is the room for spot instances, else for those on demand. Reserved capacity is in no Pool.
	Spot bool
	// Instances is how many there is room for.
	Instances int
}

// VCPUQuotas are how many virtual processors of a group of families the account may run in the region; 0 for no limit.
// See https://docs.aws.amazon.com/ec2/latest/instancetypes/ec2-instance-quotas.html.
type VCPUQuotas struct{ OnDemand, Spot int }

// checkRoom refuses an instance beyond the quota of the account, or for which there is no room in its zone.
func (s *Server) checkRoom(l *launch) error {
	group := quotaGroup(l.kind.Name)
	quotas := s.catalog.VCPUQuotas
	if group != "" {
		quotas = s.catalog.GroupQuotas[group]
	}
	quota, code := quotas.OnDemand, "VcpuLimitExceeded"
	if l.spot {
		quota, code = quotas.Spot, "MaxSpotInstanceCountExceeded"
	}
	vcpus, sameOffer := l.kind.VCPUs, 0
	for _, i := range s.instances {
		if i.state == terminated || i.launch.spot != l.spot {
			continue
		}
		if quotaGroup(i.launch.kind.Name) == group {
			vcpus += i.launch.kind.VCPUs
		}
		sameZone := i.launch.zone.AvailabilityZone == l.zone.AvailabilityZone
		if sameZone && i.launch.kind.Name == l.kind.Name && i.launch.capacity.reservation == nil {
			sameOffer++
		}
	}
	if quota > 0 && vcpus > quota {
		return beyondQuota(code, l.spot, quota)
	}
	if err := s.checkSpread(l); err != nil {
		return err
	}
	pool := find(s.catalog.Pools, func(p *Pool) bool {
		return p.InstanceType == l.kind.Name && p.AvailabilityZone == l.zone.AvailabilityZone && p.Spot == l.spot
	})
	if pool != nil && l.capacity.reservation == nil && sameOffer >= pool.Instances {
		return fail("InsufficientInstanceCapacity",
			"We currently do not have sufficient %s capacity in the Availability Zone you requested (%s).", l.kind.Name, l.zone.AvailabilityZone)
	}
	return nil
}

// spreadLimit is how many instances of a spread placement group run in one zone, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-strategies.html.
const spreadLimit = 7

func (s *Server) checkSpread(l *launch) error {
	if l.placement.strategy != "spread" {
		return nil
	}
	running := 0
	for _, i := range s.instances {
		if i.state != terminated && i.launch.placement.group == l.placement.group && i.launch.zone.AvailabilityZone == l.zone.AvailabilityZone {
			running++
		}
	}
	if running >= spreadLimit {
		return fail("InsufficientInstanceCapacity", "The spread placement group '%s' has %d running instances in %s, and takes no more there",
			l.placement.group, running, l.zone.AvailabilityZone)
	}
	return nil
}

// volumesOverQuota returns whether the volumes of a launch are beyond the quota, which shows only once EC2 creates them.
func (s *Server) volumesOverQuota(l *launch) bool {
	if s.catalog.VolumeQuotaGiB == 0 {
		return false
	}
	sizes := map[string]int{}
	for _, v := range s.volumes {
		sizes[v.device.kind] += v.device.size
	}
	for _, d := range l.devices {
		if sizes[d.kind] += d.size; sizes[d.kind] > s.catalog.VolumeQuotaGiB {
			return true
		}
	}
	return false
}

func beyondQuota(code string, spot bool, quota int) error {
	if spot {
		return fail(code, "Max spot instance count exceeded")
	}
	return fail(code, "You have requested more vCPU capacity than your current vCPU limit of %d allows for the instance bucket "+
		"that the specified instance type belongs to.", quota)
}
