package ec2

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

const tenancyHost = "host"

// placementOptions are the parts of Placement beside the zone.
type placementOptions struct {
	group, strategy, tenancy, hostID, hostGroup, affinity string
	partition                                             int
}

func readPlacement(s *Server, p params, l *launch) error {
	g := p.group("Placement")
	if zone := g["AvailabilityZone"]; zone != "" && zone != l.zone.AvailabilityZone {
		return fail("InvalidParameterValue",
			"The availability zone '%s' does not match the zone '%s' of the subnet '%s'", zone, l.zone.AvailabilityZone, l.zone.ID)
	}
	if len(l.kind.Zones) > 0 && !contains(l.kind.Zones, l.zone.AvailabilityZone) {
		return fail("Unsupported", "Your requested instance type (%s) is not supported in your requested Availability Zone (%s).",
			l.kind.Name, l.zone.AvailabilityZone)
	}
	partition, err := g.number("PartitionNumber", 0)
	if err != nil {
		return err
	}
	l.placement = placementOptions{
		group: g["GroupName"], tenancy: g["Tenancy"], hostID: g["HostId"], hostGroup: g["HostResourceGroupArn"], affinity: g["Affinity"],
		partition: partition,
	}
	if id := g["GroupId"]; id != "" {
		group := find(s.catalog.PlacementGroups, func(group *PlacementGroup) bool { return group.ID == id })
		switch {
		case l.placement.group != "":
			return fail("InvalidParameterCombination", "Specify either a placement group name or a placement group ID")
		case group == nil:
			return fail("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", id)
		}
		l.placement.group = group.Name
	}
	if err := s.readPlacementGroup(l); err != nil {
		return err
	}
	if l.kind.HostOnly && l.placement.tenancy != tenancyHost {
		return fail("UnsupportedTenancy", "The instance type %s runs on Dedicated Hosts only", l.kind.Name)
	}
	return s.readTenancy(l)
}

// readPlacementGroup checks the placement group and the partition, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/placement-groups.html.
func (s *Server) readPlacementGroup(l *launch) error {
	o := l.placement
	if o.group == "" {
		if o.partition != 0 {
			return fail("InvalidParameterCombination", "A partition number requires a placement group")
		}
		return nil
	}
	group := find(s.catalog.PlacementGroups, func(g *PlacementGroup) bool { return g.Name == o.group })
	switch {
	case group == nil:
		return fail("InvalidPlacementGroup.Unknown", "The Placement Group '%s' is unknown.", o.group)
	case !contains(l.kind.strategies(), group.Strategy):
		return fail("InvalidParameterCombination", "The instance type %s is not supported in %s placement groups", l.kind.Name, group.Strategy)
	case o.partition != 0 && group.Strategy != "partition":
		return fail("InvalidParameterCombination", "A partition number requires a placement group with the strategy partition")
	case o.partition < 0 || o.partition > max(group.Partitions, 0):
		return invalidValue(strconv.Itoa(o.partition), "partitionNumber", fmt.Sprintf("The placement group has %d partitions.", group.Partitions))
	case o.tenancy == tenancyHost:
		return fail("InvalidParameterCombination", "Placement groups do not take instances on Dedicated Hosts")
	}
	l.placement.strategy = group.Strategy
	for _, i := range s.instances {
		other := i.launch
		if group.Strategy == "cluster" && other.placement.group == o.group && i.state != terminated &&
			other.zone.AvailabilityZone != l.zone.AvailabilityZone {
			return fail("InvalidParameterValue", "The cluster placement group '%s' is in another Availability Zone, %s",
				o.group, other.zone.AvailabilityZone)
		}
	}
	return nil
}

// readTenancy checks the tenancy and the Dedicated Host, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/launching-dedicated-hosts-instances.html.
func (s *Server) readTenancy(l *launch) error {
	o := &l.placement
	if o.tenancy == "" && o.hostGroup != "" {
		o.tenancy = tenancyHost
	}
	if o.tenancy == "" {
		o.tenancy = "default"
	}
	switch {
	case !contains([]string{"default", "dedicated", tenancyHost}, o.tenancy):
		return invalidValue(o.tenancy, "tenancy", "")
	case o.affinity != "" && !contains([]string{"default", "host"}, o.affinity):
		return invalidValue(o.affinity, "affinity", "Must be default or host.")
	case o.tenancy != tenancyHost && (o.hostID != "" || o.hostGroup != "" || o.affinity != ""):
		return fail("InvalidParameterCombination", "Host ID, host resource group and affinity require the tenancy host")
	case o.hostID != "" && o.hostGroup != "":
		return fail("InvalidParameterCombination", "Specify either a host ID or a host resource group")
	case o.tenancy != tenancyHost:
		return nil
	case o.hostID != "" && !wellFormed(o.hostID, "h"):
		return fail("InvalidHostID.Malformed", `Invalid id: "%s" (expecting "h-...")`, o.hostID)
	}
	if o.hostGroup != "" && !slices.ContainsFunc(s.catalog.Hosts, func(h Host) bool { return h.ResourceGroupARN == o.hostGroup }) {
		return invalidValue(o.hostGroup, "hostResourceGroupArn", "There is no such host resource group.")
	}
	return s.chooseHost(o, l.zone.AvailabilityZone)
}

// chooseHost finds the Dedicated Host: the one that is named, one of the group, or one that takes instances unasked.
func (s *Server) chooseHost(o *placementOptions, zone string) error {
	if o.hostID != "" {
		named := find(s.catalog.Hosts, func(h *Host) bool { return h.ID == o.hostID })
		switch {
		case named == nil:
			return fail("InvalidHostID.NotFound", "The host ID '%s' does not exist", o.hostID)
		case named.AvailabilityZone != zone:
			return fail("InvalidParameterCombination", "The host '%s' is not in the Availability Zone %s", o.hostID, zone)
		}
		return nil
	}
	found := find(s.catalog.Hosts, func(h *Host) bool {
		eligible := h.AutoPlacement
		if o.hostGroup != "" {
			eligible = h.ResourceGroupARN == o.hostGroup
		}
		return eligible && h.AvailabilityZone == zone
	})
	if found == nil {
		return fail("UnavailableHostRequirements",
			"There are no Dedicated Hosts available in the Availability Zone %s that take the instance", zone)
	}
	o.hostID = found.ID
	return nil
}

// cpuOptions are the processors of an instance.
type cpuOptions struct {
	cores, threads int
	sevSNP, nested string
}

// readCPUOptions checks CpuOptions against the instance type, see
// https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instance-optimize-cpu.html.
func readCPUOptions(_ *Server, p params, l *launch) error {
	g := p.group("CpuOptions")
	cores, threads := l.kind.cores()
	l.cpu = cpuOptions{sevSNP: g["AmdSevSnp"], nested: g["NestedVirtualization"]}
	var err error
	if l.cpu.cores, err = g.number("CoreCount", cores); err != nil {
		return err
	}
	if l.cpu.threads, err = g.number("ThreadsPerCore", threads); err != nil {
		return err
	}
	switch {
	case g.has("CoreCount") != g.has("ThreadsPerCore"):
		return fail("InvalidParameterCombination", "CoreCount and ThreadsPerCore must be specified together")
	case l.cpu.cores < 1 || l.cpu.cores > cores:
		return invalidValue(strconv.Itoa(l.cpu.cores), "CpuOptions.CoreCount", "Not a number of cores of "+l.kind.Name+".")
	case l.cpu.threads < 1 || l.cpu.threads > threads:
		return invalidValue(strconv.Itoa(l.cpu.threads), "CpuOptions.ThreadsPerCore", "Not a number of threads of "+l.kind.Name+".")
	case l.cpu.sevSNP == "enabled" && !strings.HasPrefix(l.image.BootMode, "uefi"):
		return fail("InvalidParameterCombination", "AMD SEV-SNP requires an image with the boot mode uefi or uefi-preferred")
	case l.cpu.sevSNP == "enabled" && !l.kind.SEVSNP:
		return fail("InvalidParameterCombination", "The instance type %s does not support AMD SEV-SNP", l.kind.Name)
	case l.cpu.nested == "enabled" && !l.kind.NestedVirtualization:
		return fail("InvalidParameterCombination", "The instance type %s does not support nested virtualization", l.kind.Name)
	}
	for name, v := range map[string]string{"AmdSevSnp": l.cpu.sevSNP, "NestedVirtualization": l.cpu.nested} {
		if v != "" && v != "enabled" && v != "disabled" {
			return invalidValue(v, "CpuOptions."+name, "Must be enabled or disabled.")
		}
	}
	return nil
}

// cores is how many cores an instance type has, with how many threads each.
func (t *InstanceType) cores() (cores, threads int) {
	threads = min(2, t.VCPUs)
	if t.Architecture == "arm64" {
		threads = 1
	}
	return t.VCPUs / threads, threads
}
