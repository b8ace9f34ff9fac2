package instance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
)

const arnEC2 = "arn:aws:ec2:us-east-1:123456789012:"

// EC2 takes IDs where the console prints ARNs. The object itself is not changed.
func TestNormalized_ARNs_BecomeIDs(t *testing.T) {
	g := NewWithT(t)
	launch := testLaunch(func(s *infrav1.AWSMachineSpec) {
		s.AMI.ID = "arn:aws:ec2:us-east-1::image/ami-1"
		s.Subnets = []infrav1.SubnetReference{{ID: arnEC2 + "subnet/subnet-1"}}
		s.SecurityGroupIDs = []string{arnEC2 + "security-group/sg-1", "sg-1", "sg-2"}
		s.ExtraInterfaces = []infrav1.ExtraInterface{{
			Subnet: &infrav1.SubnetReference{ID: arnEC2 + "subnet/subnet-2"}, SecurityGroupIDs: []string{arnEC2 + "security-group/sg-3"},
		}}
		s.RootVolume = &infrav1.Volume{KMSKeyID: "key/1234abcd-12ab-34cd-56ef-1234567890ab"}
		s.Volumes = []infrav1.DataVolume{{Volume: infrav1.Volume{SnapshotID: "arn:aws:ec2:us-east-1::snapshot/snap-1",
			KMSKeyID: "alias/aws/ebs"}}}
		s.CapacityReservation = &infrav1.CapacityReservation{ID: arnEC2 + "capacity-reservation/cr-1"}
		s.Placement = &infrav1.Placement{HostID: arnEC2 + "dedicated-host/h-1", GroupName: arnEC2 + "placement-group/a/b"}
	})
	before := launch.Object.DeepCopy()
	spec := normalized(launch.Object).Spec
	g.Expect(launch.Object).To(Equal(before))
	g.Expect(spec.AMI.ID).To(Equal("ami-1"))
	g.Expect(spec.Subnets[0].ID).To(Equal("subnet-1"))
	g.Expect(spec.SecurityGroupIDs).To(Equal([]string{"sg-1", "sg-2"}))
	g.Expect(spec.ExtraInterfaces[0].Subnet.ID).To(Equal("subnet-2"))
	g.Expect(spec.ExtraInterfaces[0].SecurityGroupIDs).To(Equal([]string{"sg-3"}))
	g.Expect(spec.RootVolume.KMSKeyID).To(Equal("1234abcd-12ab-34cd-56ef-1234567890ab"))
	g.Expect(spec.Volumes[0].SnapshotID).To(Equal("snap-1"))
	g.Expect(spec.Volumes[0].KMSKeyID).To(Equal("alias/aws/ebs"))
	g.Expect(spec.CapacityReservation.ID).To(Equal("cr-1"))
	g.Expect(spec.Placement.HostID).To(Equal("h-1"))
	g.Expect(spec.Placement.GroupName).To(Equal("a/b"))
	g.Expect(normalized(&infrav1.AWSMachine{})).To(Equal(&infrav1.AWSMachine{}))
}

// karpenter-aws, launch templates: resolve:ssm: is before the parameter of an image.
func TestNormalizeImage_ResolveSSM_IsAParameter(t *testing.T) {
	for id, want := range map[string]string{
		"resolve:ssm:/aws/service/x/image_id":                               "/aws/service/x/image_id",
		"ssm:/aws/service/x/image_id":                                       "/aws/service/x/image_id",
		"resolve:ssm:golden:stable":                                         "golden:stable",
		"resolve:ssm:arn:aws:ssm:us-east-1:123456789012:parameter/golden:3": "arn:aws:ssm:us-east-1:123456789012:parameter/golden:3",
	} {
		g := NewWithT(t)
		ref := infrav1.AMIReference{ID: id}
		normalizeImage(&ref)
		g.Expect(ref).To(Equal(infrav1.AMIReference{SSMParameter: want}))
		ref = infrav1.AMIReference{SSMParameter: id}
		normalizeImage(&ref)
		g.Expect(ref).To(Equal(infrav1.AMIReference{SSMParameter: want}))
	}
	ref := infrav1.AMIReference{Owners: []string{"1234-5678-9012", "aws-marketplace"}}
	normalizeImage(&ref)
	NewWithT(t).Expect(ref.Owners).To(Equal([]string{"123456789012", "aws-marketplace"}))
}

// A placement group that is given by its ID is asked for by its ID.
func TestRunInput_PlacementGroupByID_SetsGroupId(t *testing.T) {
	g := NewWithT(t)
	for name, byID := range map[string]bool{"pg-0123456789abcdef0": true, "pg-mine": false} {
		in := runInput(testLaunch(func(s *infrav1.AWSMachineSpec) { s.Placement = &infrav1.Placement{GroupName: name} }),
			image{id: "ami-1"}, network{})
		g.Expect(in.Placement.GroupId != nil).To(Equal(byID))
		g.Expect(aws.ToString(in.Placement.GroupId) + aws.ToString(in.Placement.GroupName)).To(Equal(name))
	}
}

// karpenter-aws 4550, 5185: policies on tags apply to the request of a spot instance as well. EC2 refuses its type in other launches.
func TestRunInput_KarpenterAWS4550_Spot_TagsTheSpotRequest(t *testing.T) {
	g := NewWithT(t)
	tagged := func(spot *infrav1.Spot) map[types.ResourceType][]types.Tag {
		launch := testLaunch(func(s *infrav1.AWSMachineSpec) { s.Spot, s.Tags = spot, map[string]infrav1.TagValue{"team": "blue"} })
		found := map[types.ResourceType][]types.Tag{}
		for _, s := range runInput(launch, image{id: "ami-1"}, network{}).TagSpecifications {
			found[s.ResourceType] = s.Tags
		}
		return found
	}
	spot := tagged(&infrav1.Spot{})
	g.Expect(spot).To(HaveLen(4))
	g.Expect(spot[types.ResourceTypeSpotInstancesRequest]).To(Equal(spot[types.ResourceTypeInstance]))
	g.Expect(tagValue(spot[types.ResourceTypeSpotInstancesRequest], "team")).To(Equal("blue"))
	g.Expect(tagged(nil)).To(And(HaveLen(3), Not(HaveKey(types.ResourceTypeSpotInstancesRequest))))
}
