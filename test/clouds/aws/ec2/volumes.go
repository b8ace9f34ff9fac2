package ec2

import (
	"strconv"

	"millwright.dev/test/clouds/simulator"
)

type describeVolumesReply struct {
	envelope
	NextToken string      `xml:"nextToken,omitempty"`
	Volumes   []xmlVolume `xml:"volumeSet>item"`
}

type xmlVolume struct {
	ID               string                `xml:"volumeId"`
	Size             int                   `xml:"size"`
	SnapshotID       string                `xml:"snapshotId"`
	AvailabilityZone string                `xml:"availabilityZone"`
	Status           string                `xml:"status"`
	CreateTime       string                `xml:"createTime"`
	Attachments      []xmlVolumeAttachment `xml:"attachmentSet>item"`
	Tags             []xmlTag              `xml:"tagSet>item"`
	Type             string                `xml:"volumeType"`
	IOPS             int                   `xml:"iops,omitempty"`
	Throughput       int                   `xml:"throughput,omitempty"`
	Encrypted        bool                  `xml:"encrypted"`
	KMSKeyID         string                `xml:"kmsKeyId,omitempty"`
	MultiAttach      bool                  `xml:"multiAttachEnabled"`
}

type xmlVolumeAttachment struct {
	VolumeID            string `xml:"volumeId"`
	InstanceID          string `xml:"instanceId"`
	Device              string `xml:"device"`
	Status              string `xml:"status"`
	AttachTime          string `xml:"attachTime"`
	DeleteOnTermination bool   `xml:"deleteOnTermination"`
}

func volumeSeq(v *volume) int                { return v.seq }
func volumeTags(v *volume) map[string]string { return v.tags }

// volumeFilters are the simulated filters of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/API_DescribeVolumes.html.
func volumeFilters() filterTable[*volume] {
	one := func(f func(*volume) string) func(*volume) []string {
		return func(v *volume) []string {
			if value := f(v); value != "" {
				return []string{value}
			}
			return nil
		}
	}
	attached := func(f func(*volume) string) func(*volume) []string {
		return one(func(v *volume) string {
			if v.instance == nil {
				return ""
			}
			return f(v)
		})
	}
	return filterTable[*volume]{
		"attachment.delete-on-termination": attached(func(v *volume) string {
			return strconv.FormatBool(v.device.deleteOnTermination)
		}),
		"attachment.device":      attached(func(v *volume) string { return v.device.name }),
		"attachment.instance-id": attached(func(v *volume) string { return v.instance.id }),
		"attachment.status":      attached(func(v *volume) string { return v.attachment }),
		"availability-zone":      one(func(v *volume) string { return v.zone.AvailabilityZone }),
		"encrypted":              one(func(v *volume) string { return strconv.FormatBool(v.device.encrypted) }),
		"size":                   one(func(v *volume) string { return strconv.Itoa(v.device.size) }),
		"snapshot-id":            one(func(v *volume) string { return v.device.snapshot }),
		"status":                 one(func(v *volume) string { return v.status }),
		"volume-id":              one(func(v *volume) string { return v.id }),
		"volume-type":            one(func(v *volume) string { return v.device.kind }),
	}
}

func (s *Server) visibleVolumes() []*volume {
	now := s.clock.Now()
	var out []*volume
	for _, v := range s.volumes {
		if v.instance == nil || !now.Before(v.instance.visibleAt) {
			out = append(out, v)
		}
	}
	return out
}

func describeVolumes(s *Server, _ *simulator.Exchange, p params) (reply, error) {
	selected, next, err := describe(p, s.visibleVolumes(), resource[*volume]{
		idList: "VolumeId", prefix: "vol", id: func(v *volume) string { return v.id },
		malformed: "InvalidVolumeID.Malformed", missing: "InvalidVolume.NotFound", noun: "volume",
		filters: volumeFilters(), tags: volumeTags, paging: paging{scope: "volumes", min: 5, max: 1000, idsExclude: "VolumeId"},
		seq: volumeSeq,
	})
	if err != nil {
		return nil, err
	}
	out := &describeVolumesReply{NextToken: next}
	for _, v := range selected {
		d := v.device
		item := xmlVolume{
			ID: v.id, Size: d.size, SnapshotID: d.snapshot, AvailabilityZone: v.zone.AvailabilityZone, Status: v.status,
			CreateTime: xmlTime(v.createTime), Tags: xmlTags(v.tags), Type: d.kind, IOPS: d.iops, Throughput: d.throughput,
			Encrypted: d.encrypted, KMSKeyID: d.kmsKey,
		}
		if v.instance != nil {
			item.Attachments = []xmlVolumeAttachment{{
				VolumeID: v.id, InstanceID: v.instance.id, Device: d.name, Status: v.attachment,
				AttachTime: xmlTime(v.attachTime), DeleteOnTermination: d.deleteOnTermination,
			}}
		}
		out.Volumes = append(out.Volumes, item)
	}
	return out, nil
}
