package instance

import (
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

func searchSpec() *infrav1.AWSMachineSpec {
	return &infrav1.AWSMachineSpec{InstanceType: "m5.large", AMI: infrav1.AMIReference{Owners: []string{"self", "amazon"},
		Filters: []infrav1.Filter{{Name: "name", Values: []string{"a-*", "b-*"}}, {Name: "architecture", Values: []string{"x86_64"}}}}}
}

// A miss is shared for a short while by all that search the same, and asked for again before the first of them tries again.
func TestASearchWithoutResultIsSharedForAShortWhile(t *testing.T) {
	g := NewWithT(t)
	api := &fakeAPI{}
	d, clk := newFake(api)
	r, err := d.in(t.Context(), driver.Scope{Location: "us-east-1"})
	g.Expect(err).NotTo(HaveOccurred())
	for range 100 {
		_, err = r.image(t.Context(), searchSpec())
		g.Expect(driver.IsUnresolved(err)).To(BeTrue())
	}
	g.Expect(api.describes).To(Equal(1))
	clk.SetTime(clk.Now().Add(30 * time.Second)) // The first wait of the class.
	api.images = []types.Image{{ImageId: aws.String("ami-1"), State: types.ImageStateAvailable}}
	found, err := r.image(t.Context(), searchSpec())
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(found.id).To(Equal("ami-1"))
}

func TestWhatWasSearchedForIsInTheMessage(t *testing.T) {
	g := NewWithT(t)
	api := &fakeAPI{}
	d, clk := newFake(api)
	r, err := d.in(t.Context(), driver.Scope{Location: "us-east-1"})
	g.Expect(err).NotTo(HaveOccurred())
	const where = " (looked up in region us-east-1 with the provider's own credentials)"
	_, err = r.image(t.Context(), searchSpec())
	g.Expect(err).To(MatchError("DescribeImages: no available image matches the filters name=a-*|b-*, architecture=x86_64 " +
		"among those of the owners self, amazon" + where))

	clk.SetTime(clk.Now().Add(time.Minute))
	for _, id := range []string{"ami-4", "ami-2", "ami-3", "ami-1"} {
		api.images = append(api.images, types.Image{ImageId: aws.String(id), State: types.ImageStatePending})
	}
	_, err = r.image(t.Context(), searchSpec())
	g.Expect(err).To(MatchError(ContainSubstring("; image ami-1 is pending, image ami-2 is pending, image ami-3 is pending, and 1 more (looked up in")))
	spec := &infrav1.AWSMachineSpec{AMI: infrav1.AMIReference{ID: "ami-1"}, RootVolume: &infrav1.Volume{}}
	api.images = api.images[3:]
	_, err = r.image(t.Context(), spec)
	g.Expect(err).To(MatchError("DescribeImages: image ami-1 is pending" + where))

	search := []infrav1.SubnetReference{{Filters: []infrav1.Filter{{Name: "tag:role", Values: []string{"nodes"}}}}}
	_, err = d.Places(t.Context(), testLaunch(func(s *infrav1.AWSMachineSpec) { s.Subnets = search }))
	g.Expect(err).To(MatchError("DescribeSubnets: no available subnet matches the filters tag:role=nodes" + where))
}

// IDs never move to another failure domain; what a search finds may.
func TestNoSubnetInTheFailureDomain(t *testing.T) {
	g := NewWithT(t)
	d, _ := newFake(&fakeAPI{})
	r, err := d.in(t.Context(), driver.Scope{Location: "us-east-1"})
	g.Expect(err).NotTo(HaveOccurred())
	ids := []infrav1.SubnetReference{{ID: "subnet-a"}}
	g.Expect(driver.IsTerminal(r.noneIn("b", ids))).To(BeTrue())
	g.Expect(driver.IsUnresolved(r.noneIn("b", append(ids, infrav1.SubnetReference{Filters: []infrav1.Filter{{Name: "x"}}})))).To(BeTrue())
}

// Filters that read alike are not the same search.
func TestSearchesAreDistinguished(t *testing.T) {
	g := NewWithT(t)
	api := &fakeAPI{images: []types.Image{{ImageId: aws.String("ami-1")}}}
	d, _ := newFake(api)
	r, err := d.in(t.Context(), driver.Scope{Location: "us-east-1"})
	g.Expect(err).NotTo(HaveOccurred())
	for _, values := range [][]string{{"a", "b"}, {"a b"}} {
		spec := searchSpec()
		spec.AMI.Filters[0].Values = values
		_, err = r.image(t.Context(), spec)
		g.Expect(err).NotTo(HaveOccurred())
	}
	g.Expect(api.describes).To(Equal(2))
}
