package apicalls_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/aws-sdk-go-v2/credentials"
	"github.com/aws/aws-sdk-go-v2/service/sts"
	. "github.com/onsi/gomega"

	"millwright.dev/providers/aws/apicalls"
	"millwright.dev/providers/driver/calls/callstest"
)

// TestMeasured counts what STS answers by its code and status. See "Common Error Types" in the API reference of STS.
func TestMeasured(t *testing.T) {
	for i, test := range []struct {
		status int
		code   string
		result string
	}{
		{200, "", "ok"},
		{400, "Throttling", "Throttle"},
		{429, "Other", "Throttle"},
		{403, "AccessDenied", "Auth"},
		{400, "ExpiredToken", "Auth"},
		{400, "InvalidIdentityToken", "Auth"},
		{400, "MalformedPolicyDocument", "Refused"},
		{408, "RequestTimeout", "Unknown"},
		{500, "InternalFailure", "Unknown"},
		{0, "", "Unknown"},
	} {
		t.Run(fmt.Sprint(test.status, test.code), func(t *testing.T) {
			g := NewWithT(t)
			front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				switch test.status {
				case 0:
					panic(http.ErrAbortHandler)
				case http.StatusOK:
					fmt.Fprint(w, "<GetCallerIdentityResponse><GetCallerIdentityResult/></GetCallerIdentityResponse>")
				default:
					w.WriteHeader(test.status)
					fmt.Fprintf(w, "<ErrorResponse><Error><Code>%s</Code><Message>no</Message></Error></ErrorResponse>", test.code)
				}
			}))
			defer front.Close()
			region := fmt.Sprintf("test-%d", i)
			client := sts.New(sts.Options{
				Region: region, BaseEndpoint: aws.String(front.URL), Retryer: aws.NopRetryer{},
				Credentials: credentials.NewStaticCredentialsProvider("a", "b", ""),
			}, func(o *sts.Options) { o.APIOptions = append(o.APIOptions, apicalls.Measured(apicalls.Classify)) })
			_, err := client.GetCallerIdentity(t.Context(), &sts.GetCallerIdentityInput{})
			g.Expect(err == nil).To(Equal(test.result == "ok"))
			counted, err := callstest.Counted("aws", region)
			g.Expect(err).NotTo(HaveOccurred())
			g.Expect(counted).To(Equal(map[string]float64{"GetCallerIdentity " + test.result: 1}))
		})
	}
}
