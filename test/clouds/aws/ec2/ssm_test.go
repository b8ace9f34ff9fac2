package ec2_test

import (
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/ssm"
	. "github.com/onsi/gomega"

	"millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/clouds/aws/simclient"
)

func TestParameters(t *testing.T) {
	catalog := ec2.DefaultCatalog("us-east-1")
	catalog.Parameters = append(catalog.Parameters, ec2.Parameter{Name: "/secret", Value: "hunter2", Secure: true, Version: 1})
	a := newAccount(t, ec2.Options{Catalog: catalog})
	client := ssm.New(ssm.Options{
		Region: "us-east-1", BaseEndpoint: aws.String(a.url), RetryMaxAttempts: 1, HTTPClient: simclient.HTTPClient(),
		Credentials: credentials.NewStaticCredentialsProvider("AKIASIMULATED", "secret", ""),
	})
	get := func(name string) (*ssm.GetParameterOutput, error) {
		return client.GetParameter(a.ctx, &ssm.GetParameterInput{Name: aws.String(name)})
	}
	for _, name := range []string{
		ec2.DefaultParameter, ec2.DefaultParameter + ":7", "arn:aws:ssm:us-east-1::parameter" + ec2.DefaultParameter,
		"millwright-node:stable", "arn:aws:ssm:us-east-1:000000000000:parameter/millwright-node",
	} {
		out, err := get(name)
		a.Expect(err).NotTo(HaveOccurred(), name)
		a.Expect(aws.ToString(out.Parameter.Value)).To(Equal(ec2.DefaultImage))
	}
	for name, code := range map[string]string{
		"/none": "ParameterNotFound", "millwright-node:4": "ParameterVersionNotFound", "arn:aws:ssm:eu-west-1::parameter/x": "ValidationException",
	} {
		_, err := get(name)
		a.Expect(err).To(haveCode(code), name)
	}
	out, err := get("/secret")
	a.Expect(err).NotTo(HaveOccurred())
	a.Expect(aws.ToString(out.Parameter.Value)).NotTo(ContainSubstring("hunter2"), "not without decryption")

	a.server.AddFault(simapi.Fault{Action: "GetParameter", Count: 1, Error: &simapi.APIError{Code: "AccessDeniedException"}})
	_, err = get(ec2.DefaultParameter)
	a.Expect(err).To(haveCode("AccessDeniedException"))
	last := a.lastCall()
	a.Expect(last.Action).To(Equal("GetParameter"))
	a.Expect(last.Parameters).To(HaveKeyWithValue("Name", ec2.DefaultParameter))
}
