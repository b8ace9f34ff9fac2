package instance

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"testing"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"
	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
)

func TestClassify(t *testing.T) {
	for class, codes := range map[driver.Class][]string{
		driver.ClassCapacity: {"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientCapacityOnHost",
			"UnavailableHostRequirements", "ReservationCapacityExceeded",
			"UnfulfillableCapacity", "SpotMaxPriceTooLow", "Unsupported", "InsufficientFreeAddressesInSubnet"},
		driver.ClassQuota: {"VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "VolumeLimitExceeded",
			"HostLimitExceeded"},
		driver.ClassThrottle: {"RequestLimitExceeded", "Throttling", "ThrottlingException", "EC2ThrottledException"},
		driver.ClassAuth: {"UnauthorizedOperation", "AuthFailure", "AuthFailure.ServiceLinkedRoleCreationNotPermitted",
			"ExpiredToken", "ExpiredTokenException", "InvalidClientTokenId", "AccessDenied", "AccessDeniedException"},
		driver.ClassTerminal: {"InvalidInstanceType", "InvalidAMIID.Malformed", "InvalidParameter",
			"InvalidParameterValue", "InvalidParameterCombination", "InvalidSubnetID.Malformed", "InvalidSubnet.Range",
			"InvalidGroup.Reserved", "InvalidGroupId.Malformed", "InvalidKeyPair.Format", "AttachmentLimitExceeded", "PrivateIpAddressLimitExceeded",
			"UnsupportedHostConfiguration", "OperationNotPermitted", "UnsupportedOperation", "InvalidBlockDeviceMapping",
			"InvalidSnapshotID.Malformed", "InvalidCapacityReservationId.Malformed", "InvalidHostID.Malformed", "InvalidPlacementGroup.InUse"},
		// There, or not, by what others do: images are copied, shared and admitted, groups and key pairs created, and all of
		// it is spread after a while.
		driver.ClassUnresolved: {"InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidSubnetID.NotFound", "InvalidGroup.NotFound",
			"InvalidSecurityGroupID.NotFound", "InvalidKeyPair.NotFound", "InvalidSnapshot.NotFound", "InvalidKMSKey.InvalidState",
			"InvalidPlacementGroup.Unknown", "InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationState", "InvalidHostID.NotFound"},
		driver.ClassNotFound: {"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed"},
		driver.ClassUnknown:  {"InternalError", "InternalFailure", "ServiceUnavailable", "Unavailable", "RequestTimeout", "SomethingNew", ""},
	} {
		for _, code := range codes {
			t.Run(code, func(t *testing.T) {
				g := NewWithT(t)
				cause := &smithy.GenericAPIError{Code: code, Message: "Why."}
				err := classify("RunInstances", fmt.Errorf("operation error EC2: https response error, RequestID: 123: %w", cause))
				g.Expect(driver.ClassOf(err)).To(Equal(class))
				g.Expect(err.Error()).NotTo(ContainSubstring("RequestID"), "it differs each time")
				g.Expect(err.Error()).To(ContainSubstring("Why."))
				g.Expect(errors.Is(err, cause)).To(BeTrue())
			})
		}
	}
}

// Whether the code is known or not: an answer that refuses the call means that it had no effect.
func TestAnAnswerOfUnknownKindIsNoLostAnswer(t *testing.T) {
	answer := func(status int, code string) error {
		return &smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: status}},
			Err: &smithy.GenericAPIError{Code: code, Message: "Why."}}
	}
	for name, test := range map[string]struct {
		err  error
		want driver.Class
	}{
		"refused":                         {answer(400, "SomethingNew"), driver.ClassRefused},
		"refused for a new profile":       {&smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 400}}, Err: &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: "Value (node) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name"}}, driver.ClassUnresolved},
		"known":                           {answer(400, "VcpuLimitExceeded"), driver.ClassQuota},
		"token of an ended instance":      {answer(400, "IdempotentInstanceTerminated"), driver.ClassNotFound},
		"fault of the server":             {answer(500, "InternalError"), driver.ClassUnknown},
		"last of the refusals":            {answer(499, "SomethingNew"), driver.ClassRefused},
		"redirected":                      {answer(307, "SomethingNew"), driver.ClassUnknown},
		"server gave up":                  {answer(408, "RequestTimeout"), driver.ClassUnknown},
		"not the API":                     {&smithyhttp.ResponseError{Response: &smithyhttp.Response{Response: &http.Response{StatusCode: 403}}, Err: errors.New("a proxy")}, driver.ClassUnknown},
		"never sent":                      {fmt.Errorf("send: %w", &net.OpError{Op: "dial", Err: errors.New("connection refused")}), driver.ClassRefused},
		"cut while waiting for an answer": {fmt.Errorf("send: %w", &net.OpError{Op: "read", Err: errors.New("connection reset")}), driver.ClassUnknown},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(driver.ClassOf(classify("RunInstances", test.err))).To(Equal(test.want))
		})
	}
}

// What fails before the launch is asked for has created no instance, even if that answer was lost.
func TestALaunchThatIsNotAskedForMadeNothing(t *testing.T) {
	g := NewWithT(t)
	d, _ := newFake(&fakeAPI{imagesErr: errors.New("cut")})
	launch := testLaunch()
	launch.Object.Spec.RootVolume = &infrav1.Volume{}
	_, err := d.Create(t.Context(), launch)
	g.Expect(driver.ClassOf(err)).To(Equal(driver.ClassRefused))
}

func TestClassifyOtherErrors(t *testing.T) {
	g := NewWithT(t)
	g.Expect(classify("Run", nil)).To(Succeed())

	for _, message := range []string{
		"Value (node) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name",
		"Value (arn:x) for parameter iamInstanceProfile.arn is invalid. Invalid IAM Instance Profile ARN",
		"IAM Instance Profile \"node\" has no associated IAM Roles",
	} {
		profile := &smithy.GenericAPIError{Code: "InvalidParameterValue", Message: message}
		g.Expect(driver.IsUnresolved(classify("Run", profile))).To(BeTrue(), "IAM takes a while to spread a new profile")
	}

	timeout := classify("Run", fmt.Errorf("dial tcp 127.0.0.1:40123: %w", context.DeadlineExceeded))
	g.Expect(driver.IsUnknown(timeout)).To(BeTrue())
	g.Expect(timeout).To(MatchError("Run: no answer within the time limit"))
	g.Expect(timeout).To(MatchError(context.DeadlineExceeded))
	g.Expect(classify("Run", errors.New("connection reset by 10.1.2.3:40123"))).To(MatchError("Run: no answer from the API"))

	secret := errors.New("token file holds eyJhbGciOi")
	unsigned := classify("Run", fmt.Errorf("get identity: %w", &credentialsError{secret}))
	g.Expect(driver.IsAuth(unsigned)).To(BeTrue())
	g.Expect(unsigned.Error()).NotTo(ContainSubstring("eyJhbGciOi"))
	g.Expect(unsigned).To(MatchError(secret), "the cause is kept for the log")

	already := driver.NewQuotaError("Describe", "C", errors.New("x"))
	g.Expect(classify("Run", already)).To(BeIdenticalTo(already), "classified once, where it happened")
}
