package session

import (
	"net/http"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws"
	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// Where STS refuses a signature, it repeats what should have been signed: the session token is one of the headers.
func TestARefusedSignatureIsReportedWithoutTheSessionToken(t *testing.T) {
	g := NewWithT(t)
	err := explain("GetCallerIdentity", &smithyhttp.ResponseError{
		Response: &smithyhttp.Response{Response: &http.Response{StatusCode: http.StatusForbidden}},
		Err: &smithy.GenericAPIError{
			Code: "SignatureDoesNotMatch",
			Message: "The signature does not match.\n\nThe Canonical String for this request " +
				"should have been\n'POST\n/\n\nx-amz-security-token:hidden-value\n'",
		},
	})
	invalid := identity.AsInvalid(err)
	g.Expect(invalid).To(HaveField("Reason", driverv1.CredentialsRefusedReason))
	g.Expect(invalid.Message).To(ContainSubstring("SignatureDoesNotMatch: The signature does not match. "))
	g.Expect(invalid.Message).NotTo(ContainSubstring("hidden-value"))
}

// An identity whose source this version does not know must not get the process's own credentials.
func TestAnIdentityWithoutASourceGetsNone(t *testing.T) {
	g := NewWithT(t)
	err := opener{}.source(&aws.Config{}, &infrav1.AWSIdentity{}, nil)
	g.Expect(identity.AsInvalid(err)).To(HaveField("Reason", driverv1.CredentialsInvalidReason))
	ambient := &infrav1.AWSIdentity{Spec: infrav1.AWSIdentitySpec{Ambient: &infrav1.AmbientCredentials{}}}
	g.Expect(opener{}.source(&aws.Config{}, ambient, nil)).To(Succeed())
}
