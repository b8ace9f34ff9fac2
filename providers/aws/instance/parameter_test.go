package instance

import (
	"context"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/service/ec2/types"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	ssmtypes "github.com/aws/aws-sdk-go-v2/service/ssm/types"
	"github.com/aws/smithy-go"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

type parameterAPI struct {
	fakeAPI
	value string
	err   error
	names []string
}

func (f *parameterAPI) GetParameter(
	_ context.Context,
	in *ssm.GetParameterInput,
	_ ...func(*ssm.Options),
) (*ssm.GetParameterOutput, error) {
	f.names = append(f.names, *in.Name)
	if aws.ToBool(in.WithDecryption) {
		panic("secrets are not decrypted")
	}
	return &ssm.GetParameterOutput{Parameter: &ssmtypes.Parameter{Value: &f.value}}, f.err
}

func TestImageOfAParameter(t *testing.T) {
	g := NewWithT(t)
	api := &parameterAPI{
		value:   "ami-0a1",
		fakeAPI: fakeAPI{images: []types.Image{{ImageId: aws.String("ami-0a1"), RootDeviceName: aws.String("/dev/sda1")}}},
	}
	d, clk := newFake(&api.fakeAPI)
	d.clients = func(context.Context, string) (API, error) { return api, nil }
	r, err := d.in(t.Context(), driver.Scope{Location: "us-east-1"})
	g.Expect(err).NotTo(HaveOccurred())
	spec := &infrav1.AWSMachineSpec{AMI: infrav1.AMIReference{SSMParameter: "/golden"}}
	for range 3 {
		g.Expect(r.image(t.Context(), spec)).To(Equal(image{id: "ami-0a1"}))
	}
	g.Expect(api.names).To(Equal([]string{"/golden"}), "asked once")
	g.Expect(api.describes).To(BeZero())
	spec.RootVolume = &infrav1.Volume{}
	g.Expect(r.image(t.Context(), spec)).To(Equal(image{id: "ami-0a1", rootDevice: "/dev/sda1"}))

	api.value = "ami-0a2\n"
	clk.SetTime(clk.Now().Add(searchTTL))
	spec.RootVolume = nil
	g.Expect(r.image(t.Context(), spec)).To(Equal(image{id: "ami-0a2"}), "it has another value by now")
}

func TestParameterThatHoldsNoImage(t *testing.T) {
	for name, test := range map[string]struct {
		value string
		err   error
		class driver.Class
		want  string
	}{
		"a secret":            {"hunter2", nil, driver.ClassUnresolved, "the parameter /golden does not hold the ID of an AMI"},
		"a list":              {"ami-1,ami-2", nil, driver.ClassUnresolved, "does not hold the ID of an AMI and nothing else"},
		"missing":             {"", &ssmtypes.ParameterNotFound{}, driver.ClassUnresolved, "ParameterNotFound: there is no parameter /golden (looked up in region us-east-1"},
		"without a version":   {"", &ssmtypes.ParameterVersionNotFound{}, driver.ClassUnresolved, "there is no such version or label: /golden"},
		"forbidden":           {"", &smithy.GenericAPIError{Code: "AccessDeniedException", Message: "no"}, driver.ClassAuth, "no"},
		"refused permanently": {"", &smithy.GenericAPIError{Code: "ValidationException", Message: "no"}, driver.ClassTerminal, "no"},
		"too many calls":      {"", &smithy.GenericAPIError{Code: "ThrottlingException", Message: "no"}, driver.ClassThrottle, "no"},
		"fault of the server": {"", &smithy.GenericAPIError{Code: "InternalServerError", Message: "no"}, driver.ClassUnknown, "no"},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			api := &parameterAPI{value: test.value, err: test.err}
			d, clk := newFake(&api.fakeAPI)
			d.clients = func(context.Context, string) (API, error) { return api, nil }
			r, err := d.in(t.Context(), driver.Scope{Location: "us-east-1"})
			g.Expect(err).NotTo(HaveOccurred())
			_, err = r.image(t.Context(), &infrav1.AWSMachineSpec{AMI: infrav1.AMIReference{SSMParameter: "/golden"}})
			g.Expect(driver.ClassOf(err)).To(Equal(test.class))
			g.Expect(err).To(MatchError(ContainSubstring(test.want)))
			g.Expect(err.Error()).NotTo(ContainSubstring("hunter2"), "users who may write AWSMachines may not read parameters")

			api.value, api.err = "ami-0a1", nil
			clk.SetTime(clk.Now().Add(time.Minute))
			g.Expect(r.image(t.Context(), &infrav1.AWSMachineSpec{AMI: infrav1.AMIReference{SSMParameter: "/golden"}})).
				To(Equal(image{id: "ami-0a1"}))
		})
	}
}
