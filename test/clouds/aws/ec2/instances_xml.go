package ec2

import (
	"millwright.dev/test/clouds/aws/simapi"
)

type runInstancesReply struct {
	envelope
	xmlReservation
}

type xmlReservation struct {
	ID        string        `xml:"reservationId"`
	OwnerID   string        `xml:"ownerId"`
	Instances []xmlInstance `xml:"instancesSet>item"`
}

type xmlState struct {
	Code int    `xml:"code"`
	Name string `xml:"name"`
}

type xmlReason struct {
	Code    string `xml:"code"`
	Message string `xml:"message"`
}

type xmlInstance struct {
	ID                 string            `xml:"instanceId"`
	ImageID            string            `xml:"imageId"`
	State              xmlState          `xml:"instanceState"`
	PrivateDNSName     string            `xml:"privateDnsName"`
	DNSName            string            `xml:"dnsName"`
	Reason             string            `xml:"reason"`
	KeyName            string            `xml:"keyName,omitempty"`
	LaunchIndex        int               `xml:"amiLaunchIndex"`
	InstanceType       string            `xml:"instanceType"`
	LaunchTime         string            `xml:"launchTime"`
	Placement          xmlPlacement      `xml:"placement"`
	Monitoring         string            `xml:"monitoring>state"`
	SubnetID           string            `xml:"subnetId,omitempty"`
	VPCID              string            `xml:"vpcId,omitempty"`
	PrivateIPAddress   string            `xml:"privateIpAddress,omitempty"`
	PublicIPAddress    string            `xml:"ipAddress,omitempty"`
	IPv6Address        string            `xml:"ipv6Address,omitempty"`
	SourceDestCheck    bool              `xml:"sourceDestCheck"`
	Groups             []xmlGroup        `xml:"groupSet>item"`
	StateReason        *xmlReason        `xml:"stateReason"`
	Architecture       string            `xml:"architecture"`
	RootDeviceType     string            `xml:"rootDeviceType"`
	RootDeviceName     string            `xml:"rootDeviceName"`
	BlockDevices       []xmlBlockDevice  `xml:"blockDeviceMapping>item"`
	VirtualizationType string            `xml:"virtualizationType"`
	Lifecycle          string            `xml:"instanceLifecycle,omitempty"`
	SpotRequestID      string            `xml:"spotInstanceRequestId,omitempty"`
	ClientToken        string            `xml:"clientToken"`
	Tags               []xmlTag          `xml:"tagSet>item"`
	Hypervisor         string            `xml:"hypervisor"`
	Interfaces         []xmlInstanceENI  `xml:"networkInterfaceSet>item"`
	Profile            *xmlProfile       `xml:"iamInstanceProfile"`
	EBSOptimized       bool              `xml:"ebsOptimized"`
	ENASupport         bool              `xml:"enaSupport"`
	Metadata           xmlMetadataOption `xml:"metadataOptions"`
	PlatformDetails    string            `xml:"platformDetails"`
	CPU                xmlCPUOptions     `xml:"cpuOptions"`
	ReservationID      string            `xml:"capacityReservationId,omitempty"`
	Capacity           xmlCapacity       `xml:"capacityReservationSpecification"`
}

type xmlCPUOptions struct {
	Cores   int    `xml:"coreCount"`
	Threads int    `xml:"threadsPerCore"`
	SEVSNP  string `xml:"amdSevSnp,omitempty"`
	Nested  string `xml:"nestedVirtualization,omitempty"`
}

type xmlCapacity struct {
	Preference string             `xml:"capacityReservationPreference,omitempty"`
	Target     *xmlCapacityTarget `xml:"capacityReservationTarget"`
}

type xmlCapacityTarget struct {
	ID    string `xml:"capacityReservationId,omitempty"`
	Group string `xml:"capacityReservationResourceGroupArn,omitempty"`
}

type xmlPlacement struct {
	AvailabilityZone   string `xml:"availabilityZone"`
	AvailabilityZoneID string `xml:"availabilityZoneId"`
	GroupName          string `xml:"groupName"`
	Tenancy            string `xml:"tenancy"`
	HostID             string `xml:"hostId,omitempty"`
	HostGroup          string `xml:"hostResourceGroupArn,omitempty"`
	Affinity           string `xml:"affinity,omitempty"`
	PartitionNumber    int    `xml:"partitionNumber,omitempty"`
}

type xmlProfile struct {
	ARN string `xml:"arn"`
	ID  string `xml:"id"`
}

type xmlMetadataOption struct {
	State    string `xml:"state"`
	Tokens   string `xml:"httpTokens"`
	HopLimit int    `xml:"httpPutResponseHopLimit"`
	Endpoint string `xml:"httpEndpoint"`
	IPv6     string `xml:"httpProtocolIpv6"`
	Tags     string `xml:"instanceMetadataTags"`
}

type xmlBlockDevice struct {
	DeviceName string         `xml:"deviceName"`
	EBS        xmlEBSInstance `xml:"ebs"`
}

type xmlEBSInstance struct {
	VolumeID            string `xml:"volumeId"`
	Status              string `xml:"status"`
	AttachTime          string `xml:"attachTime"`
	DeleteOnTermination bool   `xml:"deleteOnTermination"`
}

func (s *Server) describeReservation(id string, instances []*instance) xmlReservation {
	out := xmlReservation{ID: id, OwnerID: s.options.AccountID}
	for _, i := range instances {
		out.Instances = append(out.Instances, s.describeInstance(i))
	}
	return out
}

func (s *Server) describeInstance(i *instance) xmlInstance {
	l := i.launch
	out := xmlInstance{
		ID: i.id, ImageID: l.image.ID, State: xmlState{Code: stateCodes[i.state], Name: i.state}, Reason: i.transition,
		KeyName: l.keyName, LaunchIndex: i.launchIndex, InstanceType: l.kind.Name, LaunchTime: xmlTime(i.launchTime),
		Placement: xmlPlacement{
			AvailabilityZone: l.zone.AvailabilityZone, AvailabilityZoneID: l.zone.AvailabilityZoneID, GroupName: l.placement.group,
			Tenancy: l.placement.tenancy, HostID: l.placement.hostID, HostGroup: l.placement.hostGroup, Affinity: l.placement.affinity,
			PartitionNumber: l.placement.partition,
		},
		CPU:        xmlCPUOptions{Cores: l.cpu.cores, Threads: l.cpu.threads, SEVSNP: l.cpu.sevSNP, Nested: l.cpu.nested},
		Capacity:   describeCapacity(l.capacity),
		Monitoring: onOff(l.monitoring), SourceDestCheck: i.primary() == nil || !i.primary().unchecked, StateReason: describeReason(i.reason),
		Architecture: l.image.Architecture, RootDeviceType: "ebs", RootDeviceName: l.image.RootDeviceName,
		VirtualizationType: "hvm", SpotRequestID: i.spotRequestID, ClientToken: l.token, Tags: xmlTags(i.tags),
		Hypervisor: "xen", EBSOptimized: l.ebsOptimized, ENASupport: true, PlatformDetails: "Linux/UNIX",
		Metadata: xmlMetadataOption{
			State: "applied", Tokens: l.metadata.tokens, HopLimit: l.metadata.hopLimit, Endpoint: l.metadata.endpoint,
			IPv6: l.metadata.ipv6, Tags: l.metadata.tags,
		},
	}
	switch {
	case l.spot:
		out.Lifecycle = "spot"
	case l.capacityBlock:
		out.Lifecycle = "capacity-block"
	}
	if r := l.capacity.reservation; r != nil {
		out.ReservationID = r.ID
	}
	if l.profile != "" {
		out.Profile = &xmlProfile{ARN: s.profileARN(l.profile), ID: "AIPA0000000000000SIM"}
	}
	s.describeNetwork(i, &out)
	for _, v := range i.volumes {
		if i.state != pending {
			out.BlockDevices = append(out.BlockDevices, xmlBlockDevice{DeviceName: v.device.name, EBS: xmlEBSInstance{
				VolumeID: v.id, Status: v.attachment, AttachTime: xmlTime(v.attachTime), DeleteOnTermination: v.device.deleteOnTermination,
			}})
		}
	}
	return out
}

func describeCapacity(c capacityRequest) xmlCapacity {
	out := xmlCapacity{Preference: c.preference}
	if c.id != "" || c.group != "" {
		out.Target = &xmlCapacityTarget{ID: c.id, Group: c.group}
	}
	return out
}

func describeReason(r simapi.StateReason) *xmlReason {
	if r.Code == "" {
		return nil
	}
	return &xmlReason{Code: r.Code, Message: r.Message}
}

func onOff(on bool) string {
	if on {
		return "enabled"
	}
	return "disabled"
}
