package ec2

import "millwright.dev/test/clouds/simulator"

type describeImagesReply struct {
	envelope
	NextToken string     `xml:"nextToken,omitempty"`
	Images    []xmlImage `xml:"imagesSet>item"`
}

type xmlImage struct {
	ID                 string          `xml:"imageId"`
	Location           string          `xml:"imageLocation"`
	State              string          `xml:"imageState"`
	OwnerID            string          `xml:"imageOwnerId"`
	CreationDate       string          `xml:"creationDate"`
	Public             bool            `xml:"isPublic"`
	Architecture       string          `xml:"architecture"`
	Type               string          `xml:"imageType"`
	Name               string          `xml:"name"`
	Description        string          `xml:"description"`
	RootDeviceType     string          `xml:"rootDeviceType"`
	RootDeviceName     string          `xml:"rootDeviceName"`
	BlockDevices       []xmlImageBlock `xml:"blockDeviceMapping>item"`
	VirtualizationType string          `xml:"virtualizationType"`
	Hypervisor         string          `xml:"hypervisor"`
	ENASupport         bool            `xml:"enaSupport"`
	IMDSSupport        string          `xml:"imdsSupport,omitempty"`
	BootMode           string          `xml:"bootMode,omitempty"`
	TPMSupport         string          `xml:"tpmSupport,omitempty"`
	PlatformDetails    string          `xml:"platformDetails"`
	Tags               []xmlTag        `xml:"tagSet>item"`
}

type xmlImageBlock struct {
	DeviceName string      `xml:"deviceName"`
	EBS        xmlImageEBS `xml:"ebs"`
}

type xmlImageEBS struct {
	SnapshotID          string `xml:"snapshotId"`
	VolumeSize          int    `xml:"volumeSize"`
	DeleteOnTermination bool   `xml:"deleteOnTermination"`
	VolumeType          string `xml:"volumeType"`
	Encrypted           bool   `xml:"encrypted"`
}

func (s *Server) imageOwner(i *Image) string {
	if i.OwnerID == "" {
		return s.options.AccountID
	}
	return i.OwnerID
}

// imageFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeImages.html.
func (s *Server) imageFilters() filterTable[indexed[Image]] {
	return filterTable[indexed[Image]]{
		"architecture":        field(func(i *Image) string { return i.Architecture }),
		"creation-date":       field(func(i *Image) string { return i.CreationDate }),
		"description":         field(func(i *Image) string { return i.Description }),
		"image-id":            field(func(i *Image) string { return i.ID }),
		"image-type":          field(func(*Image) string { return "machine" }),
		"is-public":           field(func(*Image) string { return "false" }),
		"name":                field(func(i *Image) string { return i.Name }),
		"owner-id":            field(s.imageOwner),
		"root-device-name":    field(func(i *Image) string { return i.RootDeviceName }),
		"root-device-type":    field(func(*Image) string { return "ebs" }),
		"state":               field(func(i *Image) string { return i.State }),
		"virtualization-type": field(func(*Image) string { return "hvm" }),
	}
}

func describeImages(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	images := index(s.catalog.Images)
	if owners := p.strings("Owner"); len(owners) > 0 {
		var owned []indexed[Image]
		for _, i := range images {
			owner := s.imageOwner(i.item)
			if contains(owners, owner) || owner == s.options.AccountID && contains(owners, "self") {
				owned = append(owned, i)
			}
		}
		// An ID that exists but has another owner is left out silently; one that does not exist fails.
		for _, id := range p.strings("ImageId") {
			if s.catalog.image(id) != nil && find(owned, func(i *indexed[Image]) bool { return i.item.ID == id }) == nil {
				return &describeImagesReply{}, nil
			}
		}
		images = owned
	}
	selected, next, err := describe(p, images, resource[indexed[Image]]{
		idList: "ImageId", prefix: "ami", id: func(i indexed[Image]) string { return i.item.ID },
		malformed: "InvalidAMIID.Malformed", missing: "InvalidAMIID.NotFound", noun: "image",
		filters: s.imageFilters(), tags: func(i indexed[Image]) map[string]string { return i.item.Tags },
		paging: paging{scope: "images", min: 1, max: 1000, idsExclude: "ImageId"},
		seq:    func(i indexed[Image]) int { return i.index },
	})
	if err != nil {
		return nil, err
	}
	out := &describeImagesReply{NextToken: next}
	for _, i := range selected {
		out.Images = append(out.Images, s.describeImage(i.item))
	}
	return out, nil
}

func (s *Server) describeImage(i *Image) xmlImage {
	out := xmlImage{
		ID: i.ID, Location: s.imageOwner(i) + "/" + i.Name, State: i.State, OwnerID: s.imageOwner(i), CreationDate: i.CreationDate,
		Architecture: i.Architecture, Type: "machine", Name: i.Name, Description: i.Description, RootDeviceType: "ebs",
		RootDeviceName: i.RootDeviceName, VirtualizationType: "hvm", Hypervisor: "xen", ENASupport: !i.NoENA, BootMode: i.BootMode,
		PlatformDetails: "Linux/UNIX", Tags: xmlTags(i.Tags),
		BlockDevices: []xmlImageBlock{{DeviceName: i.RootDeviceName, EBS: xmlImageEBS{
			SnapshotID: i.SnapshotID, VolumeSize: i.RootSizeGiB, DeleteOnTermination: true, VolumeType: "gp3",
		}}},
	}
	if i.TPM {
		out.TPMSupport = "v2.0"
	}
	if i.IMDSv2 {
		out.IMDSSupport = "v2.0"
	}
	return out
}
