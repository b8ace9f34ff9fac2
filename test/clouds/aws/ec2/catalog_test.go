package ec2_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	sdk "github.com/aws/aws-sdk-go-v2/service/ec2"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
)

func TestImages(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	names := func(in *sdk.DescribeImagesInput) []string {
		out, err := a.client.DescribeImages(a.ctx, in)
		a.Expect(err).NotTo(HaveOccurred())
		list := []string{}
		for _, i := range out.Images {
			list = append(list, aws.ToString(i.Name))
		}
		return list
	}
	a.Expect(names(&sdk.DescribeImagesInput{ImageIds: []string{ec2.DefaultImage}})).To(ConsistOf("millwright-node-v1.36.3-amd64"))
	a.Expect(names(&sdk.DescribeImagesInput{Owners: []string{"self"}, Filters: []types.Filter{
		filter("name", "millwright-node-*"), filter("architecture", "x86_64"), filter("state", "available"),
	}})).To(ConsistOf("millwright-node-v1.36.3-amd64", "millwright-node-v1.36.2-amd64"))
	a.Expect(names(&sdk.DescribeImagesInput{Owners: []string{"111111111111"}})).To(BeEmpty())
	_, err := a.client.DescribeImages(a.ctx, &sdk.DescribeImagesInput{ImageIds: []string{"ami-00000000000000bad"}})
	a.Expect(err).To(haveCode("InvalidAMIID.NotFound"))

	out, err := a.client.DescribeImages(a.ctx, &sdk.DescribeImagesInput{ImageIds: []string{ec2.DefaultImage}})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(aws.ToString(out.Images[0].RootDeviceName)).To(Equal("/dev/xvda"))
	a.Expect(aws.ToInt32(out.Images[0].BlockDeviceMappings[0].Ebs.VolumeSize)).To(BeEquivalentTo(8))
	a.Expect(out.Images[0].ImdsSupport).To(Equal(types.ImdsSupportValuesV20))
}

func TestSubnets(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	a.launch()
	out, err := a.client.DescribeSubnets(a.ctx, &sdk.DescribeSubnetsInput{Filters: []types.Filter{filter("vpc-id", ec2.DefaultVPC)}})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.Subnets).To(HaveLen(3))
	a.Expect(aws.ToInt32(out.Subnets[0].AvailableIpAddressCount)).To(BeEquivalentTo(4096 - 5 - 1))
	a.Expect(aws.ToString(out.Subnets[1].AvailabilityZone)).To(Equal("us-east-1b"))
	_, err = a.client.DescribeSubnets(a.ctx, &sdk.DescribeSubnetsInput{SubnetIds: []string{"subnet-00000000000000bad"}})
	a.Expect(err).To(haveCode("InvalidSubnetID.NotFound"))
}

func TestInstanceTypes(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	out, err := a.client.DescribeInstanceTypes(
		a.ctx,
		&sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"m5.large", "g4dn.xlarge"}},
	)
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.InstanceTypes).To(HaveLen(2))
	m5, gpu := out.InstanceTypes[0], out.InstanceTypes[1]
	a.Expect(aws.ToInt32(m5.VCpuInfo.DefaultVCpus)).To(BeEquivalentTo(2))
	a.Expect(aws.ToInt64(m5.MemoryInfo.SizeInMiB)).To(BeEquivalentTo(8192))
	a.Expect(m5.ProcessorInfo.SupportedArchitectures).To(ConsistOf(types.ArchitectureTypeX8664))
	a.Expect(aws.ToInt32(m5.NetworkInfo.MaximumNetworkInterfaces)).To(BeEquivalentTo(3))
	a.Expect(aws.ToInt32(m5.NetworkInfo.Ipv4AddressesPerInterface)).To(BeEquivalentTo(10))
	a.Expect(aws.ToInt32(gpu.GpuInfo.Gpus[0].Count)).To(BeEquivalentTo(1))
	_, err = a.client.DescribeInstanceTypes(a.ctx, &sdk.DescribeInstanceTypesInput{InstanceTypes: []types.InstanceType{"x9.huge"}})
	a.Expect(err).To(haveCode("InvalidInstanceType"))

	pages := sdk.NewDescribeInstanceTypesPaginator(a.client, &sdk.DescribeInstanceTypesInput{MaxResults: aws.Int32(5)})
	count := 0
	for pages.HasMorePages() {
		page, err := pages.NextPage(a.ctx)
		a.Expect(err).NotTo(HaveOccurred())
		count += len(page.InstanceTypes)
	}
	a.Expect(count).To(Equal(len(ec2.DefaultCatalog("us-east-1").InstanceTypes)))
}

func TestVPCs(t *testing.T) {
	a := newAccount(t, ec2.Options{})
	out, err := a.client.DescribeVpcs(a.ctx, &sdk.DescribeVpcsInput{VpcIds: []string{ec2.DefaultVPC}})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(out.Vpcs).To(HaveLen(1))
	a.Expect(aws.ToString(out.Vpcs[0].CidrBlock)).To(Equal("10.0.0.0/16"))
	a.Expect(aws.ToBool(out.Vpcs[0].IsDefault)).To(BeFalse())
	none, err := a.client.DescribeVpcs(a.ctx, &sdk.DescribeVpcsInput{Filters: []types.Filter{filter("is-default", "true")}})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(none.Vpcs).To(BeEmpty())
	_, err = a.client.DescribeVpcs(a.ctx, &sdk.DescribeVpcsInput{VpcIds: []string{"vpc-00000000000000bad"}})
	a.Expect(err).To(haveCode("InvalidVpcID.NotFound"))

	options, err := a.client.DescribeDhcpOptions(a.ctx, &sdk.DescribeDhcpOptionsInput{
		DhcpOptionsIds: []string{aws.ToString(out.Vpcs[0].DhcpOptionsId)},
	})
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(options.DhcpOptions).To(HaveLen(1))
	values := map[string]string{}
	for _, c := range options.DhcpOptions[0].DhcpConfigurations {
		values[aws.ToString(c.Key)] = aws.ToString(c.Values[0].Value)
	}
	a.Expect(values).To(Equal(map[string]string{"domain-name": "ec2.internal", "domain-name-servers": "AmazonProvidedDNS"}))
	_, err = a.client.DescribeDhcpOptions(a.ctx, &sdk.DescribeDhcpOptionsInput{DhcpOptionsIds: []string{"dopt-00000000000000bad"}})
	a.Expect(err).To(haveCode("InvalidDhcpOptionID.NotFound"))
}
