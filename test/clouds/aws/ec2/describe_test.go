package ec2_test

import (
	"strconv"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
)

func TestInstanceFilters(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	one := a.launch(token("alpha-1"), tagged(types.ResourceTypeInstance, tag("cluster", "c1"), tag("only", "")))
	a.clock.Step(pendingDelay)
	two := a.launch(token("alpha-2"), tagged(types.ResourceTypeInstance, tag("cluster", "c2")),
		func(in *sdk.RunInstancesInput) {
			in.SubnetId, in.InstanceType = aws.String(ec2.DefaultSubnetB), types.InstanceTypeC5Large
		})
	for _, test := range []struct {
		name    string
		filters []types.Filter
		want    []string
	}{
		{"none", nil, []string{one, two}},
		{"state", []types.Filter{filter("instance-state-name", "running")}, []string{one}},
		{"several values", []types.Filter{filter("instance-state-name", "running", "pending")}, []string{one, two}},
		{"tag", []types.Filter{filter("tag:cluster", "c2")}, []string{two}},
		{"tag with a wildcard", []types.Filter{filter("tag:cluster", "c*")}, []string{one, two}},
		{"tag with one character", []types.Filter{filter("tag:cluster", "?1")}, []string{one}},
		{"escaped wildcard", []types.Filter{filter("tag:cluster", `c\*`)}, nil},
		{"case matters", []types.Filter{filter("tag:cluster", "C2")}, nil},
		{"empty tag", []types.Filter{filter("tag:only", "")}, []string{one}},
		{"tag key", []types.Filter{filter("tag-key", "only")}, []string{one}},
		{"token", []types.Filter{filter("client-token", "alpha-2")}, []string{two}},
		{"token with a wildcard", []types.Filter{filter("client-token", "alpha-*")}, []string{one, two}},
		{"ID", []types.Filter{filter("instance-id", two)}, []string{two}},
		{"type", []types.Filter{filter("instance-type", "c5.*")}, []string{two}},
		{"zone", []types.Filter{filter("availability-zone", "us-east-1a")}, []string{one}},
		{"subnet", []types.Filter{filter("subnet-id", ec2.DefaultSubnetB)}, []string{two}},
		{"VPC", []types.Filter{filter("vpc-id", ec2.DefaultVPC)}, []string{one, two}},
		{"all of them must pass", []types.Filter{filter("tag:cluster", "c1"), filter("instance-state-name", "pending")}, nil},
	} {
		t.Run(test.name, func(t *testing.T) {
			g := NewWithT(t)
			g.Expect(a.found(test.filters...)).To(ConsistOf(test.want))
		})
	}
	for _, name := range []string{"nonsense", "network-interface.ipv6-native"} {
		_, err := a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{Filters: []types.Filter{filter(name, "x")}})
		a.Expect(err).To(haveCode("InvalidParameterValue"), name)
	}
}

func TestInstancePages(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	var ids []string
	for range 12 {
		ids = append(ids, a.launch())
	}
	pages := sdk.NewDescribeInstancesPaginator(a.client, &sdk.DescribeInstancesInput{MaxResults: aws.Int32(5)})
	var seen []string
	var sizes []int
	for pages.HasMorePages() {
		out, err := pages.NextPage(a.ctx)
		a.Expect(err).NotTo(HaveOccurred())
		sizes = append(sizes, len(out.Reservations))
		for _, r := range out.Reservations {
			seen = append(seen, aws.ToString(r.Instances[0].InstanceId))
		}
		// What vanishes between two pages moves nothing from one page to another.
		if len(sizes) == 1 {
			a.Expect(a.server.Vanish(seen[0])).To(Succeed())
		}
	}
	a.Expect(sizes).To(Equal([]int{5, 5, 2}))
	a.Expect(seen).To(Equal(ids))
}

func TestRefusedPages(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch()
	for size, code := range map[int32]string{4: "InvalidParameterValue", 1001: "InvalidParameterValue"} {
		_, err := a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{MaxResults: aws.Int32(size)})
		a.Expect(err).To(haveCode(code), strconv.Itoa(int(size)))
	}
	_, err := a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{MaxResults: aws.Int32(5), InstanceIds: []string{id}})
	a.Expect(err).To(haveCode("InvalidParameterCombination"))
	_, err = a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{NextToken: aws.String("bm9uc2Vuc2U=")})
	a.Expect(err).To(haveCode("InvalidNextToken"))
	_, err = a.client.DescribeInstances(a.ctx, &sdk.DescribeInstancesInput{InstanceIds: []string{"i-1"}})
	a.Expect(err).To(haveCode("InvalidInstanceID.Malformed"))
}

func TestTags(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	id := a.launch(tagged(types.ResourceTypeInstance, tag("a", "1")))
	volume, nic := a.server.Volumes()[0].ID, a.server.NetworkInterfaces()[0].ID
	_, err := a.client.CreateTags(a.ctx, &sdk.CreateTagsInput{
		Resources: []string{id, volume, nic}, Tags: []types.Tag{tag("a", "2"), tag("b", "3")},
	})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(a.describe(id).Tags).To(ConsistOf(tag("a", "2"), tag("b", "3")))
	a.Expect(a.server.Volumes()[0].Tags).To(HaveKeyWithValue("b", "3"))
	a.Expect(a.server.NetworkInterfaces()[0].Tags).To(HaveKeyWithValue("b", "3"))

	_, err = a.client.DeleteTags(a.ctx, &sdk.DeleteTagsInput{
		Resources: []string{id}, Tags: []types.Tag{tag("a", "other"), {Key: aws.String("b")}},
	})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(a.describe(id).Tags).To(ConsistOf(tag("a", "2")))
	_, err = a.client.CreateTags(a.ctx, &sdk.CreateTagsInput{
		Resources: []string{"vol-00000000000000bad"}, Tags: []types.Tag{tag("a", "2")},
	})
	a.Expect(err).To(haveCode("InvalidVolume.NotFound"))
}

func TestVolumesAndInterfacesByFilter(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	one := a.launch(tagged(types.ResourceTypeVolume, tag("c", "1")), tagged(types.ResourceTypeNetworkInterface, tag("c", "1")))
	a.launch()
	volumes, err := a.client.DescribeVolumes(a.ctx, &sdk.DescribeVolumesInput{
		Filters: []types.Filter{filter("attachment.instance-id", one), filter("tag:c", "1")},
	})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(volumes.Volumes).To(HaveLen(1))
	interfaces, err := a.client.DescribeNetworkInterfaces(a.ctx, &sdk.DescribeNetworkInterfacesInput{
		Filters: []types.Filter{filter("attachment.instance-id", one), filter("tag-key", "c"), filter("status", "in-use")},
	})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(interfaces.NetworkInterfaces).To(HaveLen(1))
	_, err = a.client.DescribeVolumes(a.ctx, &sdk.DescribeVolumesInput{VolumeIds: []string{"vol-00000000000000bad"}})
	a.Expect(err).To(haveCode("InvalidVolume.NotFound"))
	_, err = a.client.DescribeNetworkInterfaces(
		a.ctx,
		&sdk.DescribeNetworkInterfacesInput{NetworkInterfaceIds: []string{"eni-00000000000000bad"}},
	)
	a.Expect(err).To(haveCode("InvalidNetworkInterfaceID.NotFound"))
}

func TestInstanceStatus(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	one := a.launch()
	out, err := a.client.DescribeInstanceStatus(a.ctx, &sdk.DescribeInstanceStatusInput{})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.InstanceStatuses).To(BeEmpty(), "only running instances without IncludeAllInstances")
	a.clock.Step(pendingDelay)
	out, err = a.client.DescribeInstanceStatus(a.ctx, &sdk.DescribeInstanceStatusInput{InstanceIds: []string{one}})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.InstanceStatuses).To(HaveLen(1))
	a.Expect(out.InstanceStatuses[0].SystemStatus.Status).To(Equal(types.SummaryStatusOk))
}
