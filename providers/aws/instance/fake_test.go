package instance

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/spread"
)

// fakeAPI answers from its fields and counts; what it does not implement panics. State and errors of the
// whole API are those of the simulator, which the tests of the provider use.
type fakeAPI struct {
	API
	subnets   map[string]string // id to zone
	images    []types.Image
	pages     [][]types.Instance
	imagesErr error
	runErr    error
	describes int
	asked     []*ec2.DescribeInstancesInput
}

func (f *fakeAPI) DescribeSubnets(
	_ context.Context,
	in *ec2.DescribeSubnetsInput,
	_ ...func(*ec2.Options),
) (*ec2.DescribeSubnetsOutput, error) {
	f.describes++
	out := &ec2.DescribeSubnetsOutput{}
	for _, id := range in.SubnetIds {
		zone, ok := f.subnets[id]
		if !ok {
			return nil, &smithy.GenericAPIError{Code: "InvalidSubnetID.NotFound", Message: "no " + id}
		}
		out.Subnets = append(out.Subnets, types.Subnet{SubnetId: aws.String(id), AvailabilityZone: aws.String(zone)})
	}
	return out, nil
}

func (f *fakeAPI) DescribeImages(context.Context, *ec2.DescribeImagesInput, ...func(*ec2.Options)) (*ec2.DescribeImagesOutput, error) {
	f.describes++
	if f.imagesErr != nil {
		return nil, f.imagesErr
	}
	return &ec2.DescribeImagesOutput{Images: f.images}, nil
}

func (f *fakeAPI) DescribeInstances(
	_ context.Context,
	in *ec2.DescribeInstancesInput,
	_ ...func(*ec2.Options),
) (*ec2.DescribeInstancesOutput, error) {
	f.asked = append(f.asked, in)
	n := 0
	if in.NextToken != nil {
		n = int((*in.NextToken)[0] - '0')
	}
	out := &ec2.DescribeInstancesOutput{}
	if n < len(f.pages) {
		out.Reservations = []types.Reservation{{Instances: f.pages[n]}}
	}
	if n+1 < len(f.pages) {
		out.NextToken = aws.String(string(rune('0' + n + 1)))
	}
	return out, nil
}

func (f *fakeAPI) RunInstances(_ context.Context, in *ec2.RunInstancesInput, opts ...func(*ec2.Options)) (*ec2.RunInstancesOutput, error) {
	o := ec2.Options{}
	for _, opt := range opts {
		opt(&o)
	}
	if _, ok := o.Retryer.(aws.NopRetryer); !ok {
		panic("a launch must not be repeated by the SDK")
	}
	if f.runErr != nil {
		return nil, f.runErr
	}
	return &ec2.RunInstancesOutput{Instances: []types.Instance{{InstanceId: aws.String("i-1"), ClientToken: in.ClientToken}}}, nil
}

func newFake(api *fakeAPI) (*Driver, *clocktesting.FakePassiveClock) {
	clk := clocktesting.NewFakePassiveClock(time.Unix(100000, 0))
	if api.subnets == nil {
		api.subnets = map[string]string{"subnet-a": "a", "subnet-b": "b", "subnet-c": "c"}
	}
	return New(func(context.Context, string) (API, error) { return api, nil }, clk), clk
}

// place is what the kit makes of the Driver's places, for a machine without siblings.
func place(g *WithT, d *Driver, launch driver.Launch[*infrav1.AWSMachine]) driver.Placement {
	candidates, err := d.Places(context.Background(), launch)
	g.Expect(err).NotTo(HaveOccurred())
	return spread.Choose(candidates, nil, spread.Turn(string(launch.OwnerUID), launch.Attempt))
}

func TestPlacesAskOnce(t *testing.T) {
	g := NewWithT(t)
	api := &fakeAPI{}
	d, _ := newFake(api)
	for range 3 {
		candidates, err := d.Places(t.Context(), testLaunch())
		g.Expect(err).NotTo(HaveOccurred())
		g.Expect(candidates).To(Equal([]driver.Candidate{
			{Placement: driver.Placement{ID: "subnet-a", FailureDomain: "a", InstanceType: "m5.large", Market: "on-demand"}},
			{Placement: driver.Placement{ID: "subnet-b", FailureDomain: "b", InstanceType: "m5.large", Market: "on-demand"}},
			{Placement: driver.Placement{ID: "subnet-c", FailureDomain: "c", InstanceType: "m5.large", Market: "on-demand"}},
		}))
	}
	g.Expect(api.describes).To(Equal(3), "each subnet is asked for once")
}

func TestPlaceHonoursTheFailureDomain(t *testing.T) {
	g := NewWithT(t)
	d, _ := newFake(&fakeAPI{})
	launch := testLaunch()
	launch.FailureDomain = "b"
	g.Expect(place(g, d, launch)).
		To(Equal(driver.Placement{ID: "subnet-b", FailureDomain: "b", InstanceType: "m5.large", Market: "on-demand"}))
	launch.FailureDomain = "elsewhere"
	_, err := d.Places(t.Context(), launch)
	g.Expect(driver.IsTerminal(err)).To(BeTrue())
	g.Expect(err).To(MatchError(ContainSubstring("elsewhere")))
	_, err = d.Places(t.Context(), testLaunch(func(s *infrav1.AWSMachineSpec) { s.Subnets = []infrav1.SubnetReference{{ID: "subnet-x"}} }))
	g.Expect(driver.IsUnresolved(err)).To(BeTrue())
}

func TestNewestImage(t *testing.T) {
	g := NewWithT(t)
	img := func(id, date string, state types.ImageState) types.Image {
		return types.Image{ImageId: aws.String(id), CreationDate: aws.String(date), State: state, RootDeviceName: aws.String("/dev/" + id)}
	}
	api := &fakeAPI{images: []types.Image{
		img("ami-1", "2026-01-01T00:00:00.000Z", types.ImageStateAvailable),
		img("ami-3", "2026-03-01T00:00:00.000Z", types.ImageStatePending),
		img("ami-2", "2026-02-01T00:00:00.000Z", types.ImageStateAvailable),
		img("ami-0", "2026-02-01T00:00:00.000Z", types.ImageStateAvailable),
	}}
	d, clk := newFake(api)
	r, err := d.in(t.Context(), driver.Scope{Location: "us-east-1"})
	g.Expect(err).NotTo(HaveOccurred())
	spec := &infrav1.AWSMachineSpec{InstanceType: "m5.large", AMI: infrav1.AMIReference{Owners: []string{"self"},
		Filters: []infrav1.Filter{{Name: "name", Values: []string{"*"}}, {Name: "architecture", Values: []string{"x86_64"}}}}}
	found, err := r.image(t.Context(), spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(Equal(image{id: "ami-2", rootDevice: "/dev/ami-2"}))
	_, err = r.image(t.Context(), spec)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(api.describes).To(Equal(1), "asked once")
	clk.SetTime(clk.Now().Add(searchTTL))
	api.images = nil
	_, err = r.image(t.Context(), spec)
	g.Expect(driver.IsUnresolved(err)).To(BeTrue())
	g.Expect(api.describes).To(Equal(2), "a search is repeated after a while")
}

func TestListReadsAllPages(t *testing.T) {
	g := NewWithT(t)
	page := func(ids ...string) (list []types.Instance) {
		for _, id := range ids {
			list = append(list, types.Instance{InstanceId: aws.String(id)})
		}
		return list
	}
	api := &fakeAPI{pages: [][]types.Instance{page("i-1", "i-2"), page("i-3"), page("i-4")}}
	d, _ := newFake(api)
	found, err := d.List(t.Context(), driver.Scope{Location: "us-east-1"})
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found).To(HaveLen(4))
	g.Expect(api.asked).To(HaveLen(3))
	g.Expect(*api.asked[0].MaxResults).To(Equal(int32(1000)))
	g.Expect(*api.asked[0].Filters[0].Name).To(Equal("tag-key"))
	g.Expect(api.asked[0].Filters[0].Values).To(ConsistOf(TagOwnerUID))
}

func TestMismatch(t *testing.T) {
	g := NewWithT(t)
	api := &fakeAPI{runErr: &smithy.GenericAPIError{Code: "IdempotentParameterMismatch"}}
	d, _ := newFake(api)
	_, err := d.Create(t.Context(), testLaunch())
	g.Expect(driver.IsNotFound(err)).To(BeTrue(), "used and not visible")
	token := testLaunch().Token
	api.pages = [][]types.Instance{{
		{InstanceId: aws.String("i-1"), ClientToken: &token, State: &types.InstanceState{Name: types.InstanceStateNameTerminated}},
		{InstanceId: aws.String("i-2"), ClientToken: &token, State: &types.InstanceState{Name: types.InstanceStateNameRunning}},
	}}
	found, err := d.Create(t.Context(), testLaunch())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.Instance.ID).To(Equal("i-2"), "the live one must not stay behind")
	g.Expect(*api.asked[1].Filters[0].Name).To(Equal("client-token"))
}

func TestClientThatCannotBeMade(t *testing.T) {
	d := New(func(context.Context, string) (API, error) { return nil, context.Canceled }, clocktesting.NewFakePassiveClock(time.Unix(0, 0)))
	_, err := d.List(t.Context(), driver.Scope{Location: "us-east-1"})
	NewWithT(t).Expect(driver.IsAuth(err)).To(BeTrue())
}
