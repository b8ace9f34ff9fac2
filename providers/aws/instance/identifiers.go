package instance

import (
	"regexp"
	"slices"
	"strings"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

// resolvePrefix and ssmPrefix are before the name of a parameter where launch templates and the command line take an image. kOps writes the
// second alone.
const (
	resolvePrefix = "resolve:"
	ssmPrefix     = "ssm:"
)

// placementGroupID is the form of the ID of a placement group.
var placementGroupID = regexp.MustCompile(`^pg-[0-9a-f]{17}$`)

// normalized returns a copy of the machine whose spec has identifiers as RunInstances takes them: IDs instead of ARNs, and parameters
// of images in their own field. The API takes what the console and the command line print.
func normalized(m *infrav1.AWSMachine) *infrav1.AWSMachine {
	m = m.DeepCopy()
	spec := &m.Spec
	normalizeImage(&spec.AMI)
	for i := range spec.Subnets {
		spec.Subnets[i].ID = idOf(spec.Subnets[i].ID)
	}
	spec.SecurityGroupIDs = idsOf(spec.SecurityGroupIDs)
	for i := range spec.ExtraInterfaces {
		extra := &spec.ExtraInterfaces[i]
		extra.SecurityGroupIDs = idsOf(extra.SecurityGroupIDs)
		if extra.Subnet != nil {
			extra.Subnet.ID = idOf(extra.Subnet.ID)
		}
	}
	if spec.RootVolume != nil {
		normalizeVolume(spec.RootVolume)
	}
	for i := range spec.Volumes {
		normalizeVolume(&spec.Volumes[i].Volume)
	}
	if c := spec.CapacityReservation; c != nil {
		c.ID = idOf(c.ID)
	}
	if p := spec.Placement; p != nil {
		p.HostID = idOf(p.HostID)
		if _, name, ok := strings.Cut(p.GroupName, ":placement-group/"); ok && strings.HasPrefix(p.GroupName, "arn:") {
			p.GroupName = name
		}
	}
	return m
}

func normalizeImage(ref *infrav1.AMIReference) {
	if strings.HasPrefix(strings.TrimPrefix(ref.ID, resolvePrefix), ssmPrefix) {
		ref.ID, ref.SSMParameter = "", ref.ID
	}
	ref.ID = idOf(ref.ID)
	ref.SSMParameter = strings.TrimPrefix(strings.TrimPrefix(ref.SSMParameter, resolvePrefix), ssmPrefix)
	for i, owner := range ref.Owners {
		if owner != "" && owner[0] >= '0' && owner[0] <= '9' { // The console prints account IDs in groups of four digits.
			ref.Owners[i] = strings.ReplaceAll(owner, "-", "")
		}
	}
}

func normalizeVolume(v *infrav1.Volume) {
	v.SnapshotID = idOf(v.SnapshotID)
	v.KMSKeyID = strings.TrimPrefix(v.KMSKeyID, "key/")
}

// idOf returns the ID at the end of an ARN, such as arn:aws:ec2:eu-west-1:123456789012:subnet/subnet-0a1; an ID as it is.
func idOf(name string) string { return name[strings.LastIndex(name, "/")+1:] }

// idsOf is idOf for several, each once.
func idsOf(names []string) []string {
	var ids []string
	for _, name := range names {
		if id := idOf(name); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}
