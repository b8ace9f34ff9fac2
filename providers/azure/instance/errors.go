package instance

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"millwright.dev/providers/driver"
)

// classes holds the codes of Azure's errors by class, of calls as well as of launches that fail after they were accepted. Sources: the
// pages "Troubleshoot common Azure deployment errors", "Understand error messages for Azure Spot Virtual Machines" and "Allocation
// failures" of Azure's documentation. A code that ends in * matches all with that prefix.
var classes = []struct {
	class driver.Class
	codes []string
}{
	{driver.ClassCapacity, append([]string{
		"SkuNotAvailable", "AllocationFailed", "ZonalAllocationFailed", "OverconstrainedAllocationRequest",
		"OverconstrainedZonalAllocationRequest", codeSubnetFull, "NotAvailableForSubscription", "VMSizeNotSupported",
	}, priceCodes...)},
	{driver.ClassQuota, append([]string{
		"QuotaExceeded", "ResourceQuotaExceeded", "CoreQuotaExceeded", "RegionalCoreQuotaExceeded", "LowPriorityQuotaExceeded",
		"ResourceCountLimitExceeded", "SubscriptionQuotaExceeded",
	}, addressCodes...)},
	{driver.ClassThrottle, []string{
		"TooManyRequests", "SubscriptionRequestsThrottled", "OperationNotAllowedDueToThrottling", "RetryableErrorDueToTooManyCalls",
		"RequestsThrottled", "ResourceRequestsThrottled",
	}},
	{driver.ClassAuth, []string{
		"AuthorizationFailed", "LinkedAuthorizationFailed", "AuthenticationFailed*", "InvalidAuthenticationToken*", "ExpiredAuthenticationToken",
		"LinkedAccessCheckFailed", "SubscriptionNotFound", "MissingSubscriptionRegistration", "RequestDisallowedByPolicy",
		"ReadOnlyDisabledSubscription",
	}},
	// What the request names is not there, or not yet.
	{driver.ClassUnresolved, []string{
		codeNoGroup, "InvalidResourceReference", "PlatformImageNotFound", "GalleryImageNotFound", "ImageNotFound", "NotFound",
		"FailedIdentityOperation", "MarketplacePurchaseEligibilityFailed", "VMMarketplaceInvalidInput", "DiskEncryptionSetNotFound",
		"KeyVaultAccessForbidden", "PrivateIPAddressIsAllocated", "PrivateIPAddressInUse",
	}},
	{driver.ClassTerminal, []string{
		"InvalidParameter*", "InvalidRequest*", "BadRequest", "InvalidTemplate", "LocationNotAvailableForResourceType", "InvalidAvailabilityZone",
		"InvalidZones", "InvalidResourceName", "InvalidTag*", "VMSizeIsNotPermittedToEnableAcceleratedNetworking", "InvalidResourceType",
		"OSProvisioning*", "PropertyChangeNotAllowed", "InvalidSubscriptionId", "NoRegisteredProviderFound", codeLocked,
		"MissingApiVersionParameter",
		"PrivateIPAddressNotInSubnet", "PrivateIPAddressInReservedRange", "IPv6SubnetNotFound",
		"InvalidStorageProfile*", "ImageVersionDoesNotSupportSize", "TrustedLaunchNotSupported*", "NotSupported",
		"AzureSpotVMNotSupported*", "AzureSpotFeatureNotEnabled*", "EvictionPolicyCanBeSetOnly*", "MaxPriceValueInvalid",
	}},
	// Another operation continues, or has undone this one: it may be tried again.
	{driver.ClassRefused, []string{
		"Conflict", "OperationPreempted", "RetryableError", "AnotherOperationInProgress", "InUse*", "NicInUse", "NicReservedForAnotherVm",
		"PublicIPAddressCannotBeDeleted", "ConflictingUserInput", "AttachDiskWhileBeingDetached",
	}},
}

// codeNotAllowed stands for much: a quota, or a state in which the operation is not possible.
const codeNotAllowed = "OperationNotAllowed"

// codeSubnetFull is that of a shortage that does not depend on the size.
const codeSubnetFull = "SubnetIsFull"

// priceCodes are those of shortages at the price that is offered, see https://learn.microsoft.com/azure/virtual-machines/error-codes-spot.
var priceCodes = []string{
	"SpotPriceGreaterThanProvidedMaxPrice", "SpotMaxPriceBelowMarketPrice", "BadRequestMaxPriceLessThanCurrentPrice",
}

// addressCodes are those of the quotas on public addresses, with which no other size helps.
var addressCodes = []string{"PublicIPCountLimitReached", "StaticPublicIPCountLimitReached"}

// quotaOfAll is in the message about another quota that is the same for all sizes: that of a kind of disks, or of virtual machines.
var quotaOfAll = regexp.MustCompile(`(?i)exceed\w* approved (\w*DiskCount|Virtual ?Machines) (quota|limit)`)

// allTypes returns whether the quota that is used up is the same for all sizes.
func allTypes(class driver.Class, code, message string) bool {
	return class == driver.ClassQuota && (slices.Contains(addressCodes, code) || quotaOfAll.MatchString(message))
}

// quotaMessage is in the message of codeNotAllowed for a quota.
var quotaMessage = regexp.MustCompile(`(?i)exceed\w* .*quota`)

// limitOfSize is in the message of codeNotAllowed for more disks than a size has, which no retry changes.
var limitOfSize = regexp.MustCompile(`(?i)maximum number of data disks`)

// changing are parts of messages that differ from call to call: conditions show messages, and would change each time.
var changing = regexp.MustCompile(`(?i)[ ,.;(]*\b(correlation|tracking|request|activity|operation)[ -]?id:? ?'?[0-9a-f-]{36}'?[).]*` +
	`|[ ,]*timestamp:? ?'?[0-9TZ:. -]+'?`)

// classOf returns the class of a code; empty if it is not known.
func classOf(code, message string) driver.Class {
	if code == codeNotAllowed {
		if quotaMessage.MatchString(message) {
			return driver.ClassQuota
		}
		if limitOfSize.MatchString(message) {
			return driver.ClassTerminal
		}
		return driver.ClassRefused
	}
	for _, c := range classes {
		if slices.ContainsFunc(c.codes, func(pattern string) bool { return matches(pattern, code) }) {
			return c.class
		}
	}
	return ""
}

func matches(pattern, code string) bool {
	if prefix, wild := strings.CutSuffix(pattern, "*"); wild {
		return len(code) >= len(prefix) && strings.EqualFold(code[:len(prefix)], prefix)
	}
	return strings.EqualFold(pattern, code) // Azure itself writes some of them in lower case.
}

// refusedLate is the class of a launch that has failed after it was accepted: it has ended, so nothing of it is unknown.
func refusedLate(code, message string) driver.Class {
	if code == codeLocked {
		return driver.ClassUnresolved // Until the lock is off.
	}
	if class := classOf(code, message); class != "" {
		return class
	}
	return driver.ClassRefused
}

// classify wraps an error of the SDK with its class.
func classify(operation string, err error) error {
	var answer *azcore.ResponseError
	var already *driver.Error
	var unsigned *credentialsError
	var dial *net.OpError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &already):
		return err
	case errors.As(err, &unsigned):
		return driver.NewAuthError(operation, "", &apiMessage{unsigned.Error(), err})
	case errors.As(err, &answer):
		return refusal(operation, answer)
	case errors.As(err, &dial) && dial.Op == "dial":
		return driver.NewRefusedError(operation, "", &apiMessage{"no connection to Azure Resource Manager: check its address and the network",
			err})
	case errors.Is(err, context.DeadlineExceeded):
		return driver.NewUnknownError(operation, "", &apiMessage{"no answer within the time limit", err})
	}
	return driver.NewUnknownError(operation, "",
		&apiMessage{"the connection to Azure broke before its answer was complete, or the answer is not Azure's", err})
}

// refusal is the error of a call that was answered with a status that is no success. Azure answers with 4xx before any effect; a 5xx may
// come after it, and so may what is not Azure's answer.
func refusal(operation string, answer *azcore.ResponseError) error {
	code, message := bodyOf(answer)
	class := classOf(code, message)
	status := answer.StatusCode
	switch {
	case status == http.StatusTooManyRequests:
		class = driver.ClassThrottle
	case status == http.StatusPreconditionFailed:
		class = driver.ClassConflict
	case status == http.StatusNotFound && code == "ResourceNotFound":
		class = driver.ClassNotFound
	case class == "" && (status == http.StatusUnauthorized || status == http.StatusForbidden):
		class = driver.ClassAuth
	case class == "" && status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		class = driver.ClassRefused
	case class == "" || status >= 500 && class != driver.ClassCapacity && class != driver.ClassThrottle:
		class = driver.ClassUnknown
	}
	if message == "" {
		message = "Azure answered " + strconv.Itoa(status) + " " + http.StatusText(status)
	}
	return &driver.Error{
		Class: class, Operation: operation, Code: code, RetryAfter: retryAfter(answer.RawResponse),
		OnlyPlace: code == codeSubnetFull, OnlyTerms: slices.Contains(priceCodes, code),
		AllTypes: allTypes(class, code, message), Err: &apiMessage{changing.ReplaceAllString(message, ""), answer},
	}
}

// maxMessage is how much of a message is shown.
const maxMessage = 1000

// bodyOf reads code and message of an error answer; the first of its details is what has really happened, if the code is a general one.
func bodyOf(answer *azcore.ResponseError) (code, message string) {
	var body struct{ Error apiError }
	if answer.RawResponse != nil {
		if raw, err := runtime.Payload(answer.RawResponse); err == nil {
			_ = json.Unmarshal(raw, &body) // A proxy may answer with something else: the status remains.
		}
	}
	code, message = mostSpecific(body.Error)
	return cmp.Or(code, answer.ErrorCode), message
}

// apiError is an error in the body of an answer or of an operation.
type apiError struct {
	apiDetail
	Details []apiDetail `json:"details"`
}

type apiDetail struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// mostSpecific returns the first detail if the code is a general one: the detail names the cause.
func mostSpecific(e apiError) (code, message string) {
	found := e.apiDetail
	if classOf(found.Code, found.Message) == "" && len(e.Details) > 0 {
		found = e.Details[0]
	}
	return found.Code, found.Message[:min(len(found.Message), maxMessage)]
}

// retryAfter is how long the answer asks to wait.
func retryAfter(response *http.Response) time.Duration {
	if response == nil {
		return 0
	}
	seconds, err := strconv.Atoi(response.Header.Get("Retry-After"))
	if err != nil || seconds < 0 {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

// notFound is the error of a handle that leads to nothing.
func notFound(operation string) error {
	return driver.NewNotFoundError(operation, "", errors.New("there is no such virtual machine"))
}

// credentialsError means that a call was never sent, for lack of a token by the credentials of the process. It shows what
// session.Explain makes of the cause, which may quote what the credentials were read from.
type credentialsError struct{ err error }

// Error reports what to look for.
func (e *credentialsError) Error() string {
	return "no token could be obtained with the credentials of the provider's process: " + e.err.Error()
}

// Unwrap returns the cause.
func (e *credentialsError) Unwrap() error { return e.err }

// apiMessage shows a message that stays the same and keeps the cause for errors.As and logs.
type apiMessage struct {
	message string
	err     error
}

// Error returns the message.
func (e *apiMessage) Error() string { return e.message }

// Unwrap returns the cause.
func (e *apiMessage) Unwrap() error { return e.err }
