package instance

import (
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	"millwright.dev/providers/driver"
)

// classes holds the codes of errors by class. Source: "Error codes for the Amazon EC2 API" in the EC2 developer guide, and the errors of
// the actions in the API reference of Systems Manager. A code that ends in * matches all with that prefix.
var classes = []struct {
	class driver.Class
	codes []string
}{
	{driver.ClassCapacity, []string{
		"InsufficientInstanceCapacity", "InsufficientHostCapacity", "InsufficientReservedInstanceCapacity",
		"InsufficientCapacity", "ReservationCapacityExceeded", "UnfulfillableCapacity", codePrice,
		"InsufficientFreeAddressesInSubnet", "InsufficientAddressCapacity", codeVolumeCapacity,
		// Dedicated Hosts: the named one is full, or none takes the instance.
		"InsufficientCapacityOnHost", "UnavailableHostRequirements",
		// The instance type is not offered in the zone: another zone may have it.
		"Unsupported",
	}},
	{driver.ClassQuota, []string{
		"VcpuLimitExceeded", "InstanceLimitExceeded", "MaxSpotInstanceCountExceeded", "VolumeLimitExceeded",
		"NetworkInterfaceLimitExceeded", "MaxIOPSLimitExceeded", "SecurityGroupsPerInterfaceLimitExceeded",
		"AddressLimitExceeded", "VolumeIOPSLimit", "ResourceLimitExceeded", "LimitExceededException", "HostLimitExceeded",
	}},
	{driver.ClassThrottle, []string{
		"RequestLimitExceeded", "Throttling*", "EC2ThrottledException", "TooManyRequestsException",
		"SlowDown", "PriorRequestNotComplete", "RequestThrottled*",
	}},
	{driver.ClassAuth, []string{
		"UnauthorizedOperation", "AuthFailure*", "ExpiredToken*", "InvalidClientTokenId", "UnrecognizedClientException",
		"Blocked", "PendingVerification", "OptInRequired", "AccessDenied*", "SignatureDoesNotMatch",
		"IncompleteSignature", "MissingAuthenticationToken", "RequestExpired", "InvalidAccessKeyId",
	}},
	{driver.ClassNotFound, []string{"InvalidInstanceID.NotFound", "InvalidInstanceID.Malformed",
		// A launch with the token of an instance that has ended.
		"IdempotentInstanceTerminated",
	}},
	// What the request names is not there, or not yet: EC2 and IAM are eventually consistent, images are copied, shared and
	// admitted by the account's Allowed AMIs, and all of these can be created later.
	{driver.ClassUnresolved, []string{
		"InvalidAMIID.NotFound", "InvalidAMIID.Unavailable", "InvalidSubnetID.NotFound", "InvalidGroup.NotFound",
		"InvalidSecurityGroupID.NotFound", "InvalidKeyPair.NotFound", "InvalidSnapshot.NotFound", "InvalidKMSKey.InvalidState",
		"InvalidPlacementGroup.Unknown", "InvalidCapacityReservationId.NotFound", "InvalidCapacityReservationState",
		"InvalidHostID.NotFound", "InvalidNetworkInterfaceID.NotFound",
	}},
	{driver.ClassTerminal, []string{
		"InvalidAMIID.*", "InvalidParameter*", "InvalidSubnet*", "InvalidGroup.*", "InvalidGroupId.*",
		"InvalidSecurityGroupID.*", "InvalidKeyPair.*", "InvalidBlockDeviceMapping", "InvalidInput", "InvalidSnapshot*",
		"InvalidUserData.*", "InvalidTag*", "TagLimitExceeded", "MissingParameter", "UnknownParameter", "ValidationError", "ValidationException",
		"VolumeTypeNotAvailableInZone", "UnsupportedOperation", "UnsupportedInstanceAttribute", "OperationNotPermitted",
		"InvalidKMSKey*", "InvalidHostID.*", "InvalidCapacityReservationId.*", "InvalidPlacementGroup.*", "EncryptedVolumesNotSupported",
		"InstanceTypeNotSupported", "InvalidInstanceType", "OperationNotSupported", "InvalidAMIAttributeItemValue",
		// More interfaces or addresses than the instance type has room for, and what its host cannot do.
		"AttachmentLimitExceeded", "PrivateIpAddressLimitExceeded", "UnsupportedHostConfiguration", "InvalidHostConfiguration",
		"UnsupportedTenancy", "UnknownVolumeType",
	}},
}

// codeMismatch means that the token was used before with other parameters.
const codeMismatch = "IdempotentParameterMismatch"

// instanceProfileMessages are in the messages of an InvalidParameterValue for an instance profile, or its role, that does not
// exist or that IAM has not spread to the region yet. EC2 has no code of its own for it.
var instanceProfileMessages = []string{"invalid iam instance profile", "has no associated iam roles"}

// codeVolumeCapacity means that EBS lacks capacity for a volume in the zone.
const codeVolumeCapacity = "InsufficientVolumeCapacity"

// placeCodes mean that a subnet lacks addresses, or its zone volumes, for instances of every type; all other shortages are of the instance
// type in the zone.
var placeCodes = []string{"InsufficientFreeAddressesInSubnet", "InsufficientAddressCapacity", codeVolumeCapacity}

// allTypesCodes are quotas that have nothing to do with the instance type: no other type helps. Quotas on vCPUs are counted by groups of
// families ("On-Demand Instance quotas" and "Spot Instance quotas" in the EC2 user guide).
var allTypesCodes = []string{
	"VolumeLimitExceeded", "MaxIOPSLimitExceeded", "VolumeIOPSLimit", "NetworkInterfaceLimitExceeded",
	"SecurityGroupsPerInterfaceLimitExceeded",
	"AddressLimitExceeded", "LimitExceededException",
}

// codePrice means that spot capacity costs more than the spec pays. Who pays more gets it.
const codePrice = "SpotMaxPriceTooLow"

// classify wraps an error of the SDK with its class.
func classify(operation string, err error) error {
	if err == nil {
		return nil
	}
	var unsigned *credentialsError
	var already *driver.Error
	if errors.As(err, &already) {
		if errors.As(err, &unsigned) { // The session of an identity has said what it means that there are none.
			return &driver.Error{Class: already.Class, Operation: operation, Err: already.Err}
		}
		return err
	}
	code, message := codeOf(err)
	e := &driver.Error{Class: classOf(code, message), Operation: operation, Code: code, Err: plain(err, message)}
	e.OnlyPlace, e.OnlyTerms = slices.Contains(placeCodes, code), code == codePrice
	e.AllTypes = slices.Contains(allTypesCodes, code)
	if e.Class == driver.ClassUnknown && hadNoEffect(err) {
		e.Class = driver.ClassRefused
	}
	if errors.As(err, &unsigned) {
		e.Class, e.Err = driver.ClassAuth, &apiMessage{message: unsigned.Error(), err: err}
	}
	return e
}

// hadNoEffect is true if the API has refused the call, for whatever reason, or that the call never left: a 4xx of the API's own
// comes before any effect, unless the server has stopped waiting for the call; a 5xx may come after it.
func hadNoEffect(err error) bool {
	var unsent *unsentError
	var dial *net.OpError
	if errors.As(err, &unsent) || errors.As(err, &dial) && dial.Op == "dial" {
		return true
	}
	var answer *smithyhttp.ResponseError
	code, _ := codeOf(err)
	if code == "" || !errors.As(err, &answer) {
		return false
	}
	status := answer.HTTPStatusCode()
	return status >= 400 && status < 500 && status != http.StatusRequestTimeout
}

// classOf returns the class of a code; Unknown for those that are not in the table, which are the
// server's own faults and whatever AWS adds.
func classOf(code, message string) driver.Class {
	if slices.ContainsFunc(instanceProfileMessages, func(part string) bool { return strings.Contains(strings.ToLower(message), part) }) {
		return driver.ClassUnresolved
	}
	for _, c := range classes {
		if slices.ContainsFunc(c.codes, func(pattern string) bool { return matches(pattern, code) }) {
			return c.class
		}
	}
	return driver.ClassUnknown
}

func matches(pattern, code string) bool {
	if prefix, ok := strings.CutSuffix(pattern, "*"); ok {
		return strings.HasPrefix(code, prefix)
	}
	return pattern == code
}

// codeOf returns the API's code and message; empty if the API did not answer.
func codeOf(err error) (code, message string) {
	var api smithy.APIError
	if errors.As(err, &api) {
		return api.ErrorCode(), api.ErrorMessage()
	}
	return "", ""
}

// plain returns an error for people: the API's own message without request IDs, which differ each
// time and would make each condition a new one.
func plain(err error, message string) error {
	var unsent *unsentError
	switch {
	case message != "":
		return &apiMessage{message: message, err: err}
	case errors.As(err, &unsent):
		return &apiMessage{message: unsent.Error(), err: err}
	case errors.Is(err, context.DeadlineExceeded):
		return &apiMessage{message: "no answer within the time limit", err: err}
	}
	return &apiMessage{message: "no answer from the API", err: err}
}

// credentialsError means that a call was never sent, for lack of credentials to sign it. It does not
// show its cause, which may quote what the credentials were read from.
type credentialsError struct{ err error }

func (e *credentialsError) Error() string {
	return "there are no usable AWS credentials; the provider's log has the details"
}

func (e *credentialsError) Unwrap() error { return e.err }

// apiMessage shows a message that stays the same and keeps the cause for errors.As and logs.
type apiMessage struct {
	message string
	err     error
}

func (e *apiMessage) Error() string { return e.message }

func (e *apiMessage) Unwrap() error { return e.err }

// isMismatch returns whether the token was used before with other parameters.
func isMismatch(err error) bool {
	code, _ := codeOf(err)
	return code == codeMismatch
}
