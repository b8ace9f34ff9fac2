package instance

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

func TestFinishCallsForWhatDiffers(t *testing.T) {
	g := NewWithT(t)
	api := &networkAPI{}
	d, _ := inRegion(t, api)
	nic := func(card, device int32, id, kind string, check *bool) types.InstanceNetworkInterface {
		return types.InstanceNetworkInterface{
			NetworkInterfaceId: aws.String(id), InterfaceType: aws.String(kind), SourceDestCheck: check,
			Attachment: &types.InstanceNetworkInterfaceAttachment{DeviceIndex: aws.Int32(device), NetworkCardIndex: aws.Int32(card)},
		}
	}
	i := fromEC2(types.Instance{NetworkInterfaces: []types.InstanceNetworkInterface{
		nic(0, 1, "eni-2", "interface", aws.Bool(false)), nic(0, 0, "eni-1", "interface", aws.Bool(true)),
		nic(1, 1, "eni-3", "efa-only", aws.Bool(true)), nic(1, 2, "eni-4", "efa", aws.Bool(true)),
		nic(0, 2, "eni-5", "interface", aws.Bool(true)), nic(2, 1, "eni-6", "efa", nil), {NetworkInterfaceId: aws.String("eni-7")},
	}})
	g.Expect(i.Settings).To(Equal("0/0:eni-1:true 0/1:eni-2:false 0/2:eni-5:true 1/2:eni-4:true"))
	m := &infrav1.AWSMachine{}
	m.Spec.Region = "us-east-1"
	m.Spec.ExtraInterfaces = []infrav1.ExtraInterface{
		{},
		{NetworkCardIndex: new(int32(1)), InterfaceType: "efa-only"},
		{NetworkCardIndex: new(int32(1))},
	}
	g.Expect(d.Unfinished(m, i)).To(BeEmpty(), "unset is as it is")
	m.Spec.SourceDestCheck = new(false)
	g.Expect(d.Unfinished(m, i)).To(Equal("sourceDestCheck is not false on eni-1, eni-4"), "eni-5 was attached by another user")
	g.Expect(d.Finish(t.Context(), m, i)).To(Succeed())
	g.Expect(api.modified).To(HaveLen(2))
	g.Expect(*api.modified[0].NetworkInterfaceId).To(Equal("eni-1"))
	g.Expect(*api.modified[0].SourceDestCheck.Value).To(BeFalse())
	g.Expect(*api.modified[1].NetworkInterfaceId).To(Equal("eni-4"))
	m.Spec.SourceDestCheck = new(true)
	g.Expect(d.Unfinished(m, i)).To(Equal("sourceDestCheck is not true on eni-2"))

	api.refused = &smithy.GenericAPIError{Code: "InvalidNetworkInterfaceID.NotFound"}
	g.Expect(driver.ClassOf(d.Finish(t.Context(), m, i))).To(Equal(driver.ClassRefused), "soon after the launch it is not known everywhere")
	api.refused = &smithy.GenericAPIError{Code: "UnauthorizedOperation"}
	g.Expect(driver.IsAuth(d.Finish(t.Context(), m, i))).To(BeTrue())
}

func TestSettingsThatCannotBeReadAreNone(t *testing.T) {
	NewWithT(t).Expect(parseSettings("x 0/0 0/a:eni:true 0/1:eni-1:true")).To(Equal([]networkInterface{{slot{0, 1}, "eni-1", true}}))
}
