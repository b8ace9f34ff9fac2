package instance

import (
	"encoding/base64"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

func testLaunch(adjust ...func(*infrav1.AWSMachineSpec)) driver.Launch[*infrav1.AWSMachine] {
	m := &infrav1.AWSMachine{}
	m.Namespace, m.Name = "ns", "m"
	m.Spec.Region, m.Spec.InstanceType = "us-east-1", "m5.large"
	m.Spec.AMI.ID = "ami-1"
	m.Spec.Subnets = []infrav1.SubnetReference{{ID: "subnet-a"}, {ID: "subnet-b"}, {ID: "subnet-c"}}
	for _, a := range adjust {
		a(&m.Spec)
	}
	return driver.Launch[*infrav1.AWSMachine]{
		Object: m, Scope: driver.Scope{Location: m.Spec.Region}, Token: "mw-uid-1", OwnerUID: "uid", Attempt: 1, ClusterName: "green",
		Placement: driver.Placement{ID: "subnet-a", FailureDomain: "us-east-1a"}, UserData: []byte("#cloud-config\n"),
	}
}

func TestRunInput(t *testing.T) {
	g := NewWithT(t)
	in := runInput(testLaunch(), image{id: "ami-1"}, network{})
	g.Expect(*in.ClientToken).To(Equal("mw-uid-1"))
	g.Expect(*in.MinCount).To(Equal(int32(1)))
	g.Expect(*in.MaxCount).To(Equal(int32(1)))
	g.Expect(base64.StdEncoding.DecodeString(*in.UserData)).To(Equal([]byte("#cloud-config\n")))
	g.Expect(in.NetworkInterfaces).To(HaveLen(1))
	g.Expect(*in.NetworkInterfaces[0].SubnetId).To(Equal("subnet-a"))
	g.Expect(*in.NetworkInterfaces[0].DeleteOnTermination).To(BeTrue())
	g.Expect(in.NetworkInterfaces[0].AssociatePublicIpAddress).To(BeNil(), "as the subnet is set")
	g.Expect(in.MetadataOptions.HttpTokens).To(Equal(types.HttpTokensStateRequired))
	g.Expect(*in.MetadataOptions.HttpPutResponseHopLimit).To(Equal(int32(1)))
	g.Expect(in.InstanceMarketOptions).To(BeNil())
	g.Expect(in.IamInstanceProfile).To(BeNil())
	g.Expect(in.KeyName).To(BeNil())
	g.Expect(in.BlockDeviceMappings).To(BeEmpty())
	g.Expect(in.InstanceInitiatedShutdownBehavior).To(Equal(types.ShutdownBehaviorTerminate))
	for range 20 {
		tags := func(s *infrav1.AWSMachineSpec) {
			s.Tags = map[string]infrav1.TagValue{"a": "1", "b": "2", "c": "3", "d": "4", "e": "5"}
		}
		g.Expect(runInput(testLaunch(tags), image{id: "ami-1"}, network{})).To(Equal(runInput(testLaunch(tags), image{id: "ami-1"}, network{})),
			"the same token comes with the same request")
	}
}

func TestRunInputWithEverything(t *testing.T) {
	g := NewWithT(t)
	in := runInput(testLaunch(func(s *infrav1.AWSMachineSpec) {
		s.PublicIP = aws.Bool(true)
		s.IAMInstanceProfile, s.KeyName = "node", "me"
		s.RootVolume = &infrav1.Volume{SizeGiB: aws.Int32(30), Type: "gp3", IOPS: aws.Int32(4000), ThroughputMiBps: aws.Int32(250),
			Encrypted: aws.Bool(true), KMSKeyID: "key"}
		s.Volumes = []infrav1.DataVolume{{Device: "/dev/sdf", Volume: infrav1.Volume{SizeGiB: aws.Int32(10)}}}
		s.Spot = &infrav1.Spot{MaxPrice: "0.1"}
		s.Metadata = infrav1.InstanceMetadata{Tokens: infrav1.MetadataTokensOptional, HopLimit: aws.Int32(2)}
	}), image{id: "ami-1", rootDevice: "/dev/xvda"}, network{groups: []string{"sg-1"}})
	g.Expect(*in.NetworkInterfaces[0].AssociatePublicIpAddress).To(BeTrue())
	g.Expect(in.NetworkInterfaces[0].Groups).To(ConsistOf("sg-1"))
	g.Expect(*in.IamInstanceProfile.Name).To(Equal("node"))
	g.Expect(*in.KeyName).To(Equal("me"))
	g.Expect(in.BlockDeviceMappings).To(Equal([]types.BlockDeviceMapping{
		{DeviceName: aws.String("/dev/xvda"), Ebs: &types.EbsBlockDevice{DeleteOnTermination: aws.Bool(true), VolumeSize: aws.Int32(30),
			VolumeType: "gp3", Iops: aws.Int32(4000), Throughput: aws.Int32(250), Encrypted: aws.Bool(true), KmsKeyId: aws.String("key")}},
		{DeviceName: aws.String("/dev/sdf"), Ebs: &types.EbsBlockDevice{DeleteOnTermination: aws.Bool(true), VolumeSize: aws.Int32(10)}},
	}))
	g.Expect(in.InstanceMarketOptions.MarketType).To(Equal(types.MarketTypeSpot))
	g.Expect(*in.InstanceMarketOptions.SpotOptions.MaxPrice).To(Equal("0.1"))
	g.Expect(in.InstanceMarketOptions.SpotOptions.InstanceInterruptionBehavior).To(Equal(types.InstanceInterruptionBehaviorTerminate))
	g.Expect(in.MetadataOptions.HttpTokens).To(Equal(types.HttpTokensStateOptional))
	g.Expect(*in.MetadataOptions.HttpPutResponseHopLimit).To(Equal(int32(2)))
}

// The default is the safe form: a token, and no hop to what a pod could send on.
func TestCAPA3744And4247TheMetadataService(t *testing.T) {
	for name, test := range map[string]struct {
		spec   infrav1.InstanceMetadata
		tokens types.HttpTokensState
		hops   int32
	}{
		"by default":         {infrav1.InstanceMetadata{}, types.HttpTokensStateRequired, 1},
		"without tokens":     {infrav1.InstanceMetadata{Tokens: infrav1.MetadataTokensOptional}, types.HttpTokensStateOptional, 1},
		"for pods, with two": {infrav1.InstanceMetadata{HopLimit: aws.Int32(2)}, types.HttpTokensStateRequired, 2},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			options := runInput(
				testLaunch(func(s *infrav1.AWSMachineSpec) { s.Metadata = test.spec }),
				image{id: "ami-1"},
				network{},
			).MetadataOptions
			g.Expect(options.HttpTokens).To(Equal(test.tokens))
			g.Expect(options.HttpPutResponseHopLimit).To(HaveValue(Equal(test.hops)))
		})
	}
}

func TestCAPA4629TagsOfAUserHideNoInstance(t *testing.T) {
	g := NewWithT(t)
	launch := testLaunch(func(s *infrav1.AWSMachineSpec) {
		// The API refuses these; should one get through, ownership still wins.
		s.Tags = map[string]infrav1.TagValue{"team": "blue", "Name": "mine", TagOwnerUID: "x"}
	})
	tags := ownershipTags(launch)
	g.Expect(tags).To(Equal(map[string]string{
		"team": "blue", TagOwnerUID: "uid", TagCluster: "ns/green", TagMachine: "ns/m",
		"kubernetes.io/cluster/green": "owned", "Name": "m", "MachineName": "ns/m",
	}))
	specs := tagSpecifications(tags, false)
	g.Expect(specs).To(HaveLen(3))
	for _, s := range specs {
		g.Expect(tagValue(s.Tags, TagOwnerUID)).To(Equal("uid"))
		g.Expect(s.Tags).To(HaveLen(7))
	}
	g.Expect(tagValue(nil, TagOwnerUID)).To(BeEmpty())
	launch.Lineage = "cluster_epoch_1"
	g.Expect(ownershipTags(launch)).To(HaveKeyWithValue(TagLineage, "cluster_epoch_1"))
}
