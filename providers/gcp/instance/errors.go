package instance

import (
	"cmp"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/identity"
)

// codes are the reasons of refused calls, in lower camel case, and the codes of operations that have failed, in capitals, by what they
// mean. What can never be right is terminal; what may come to be, such as an image or a right of an organization's policy, is
// unresolved. https://cloud.google.com/compute/docs/troubleshooting/troubleshooting-resource-availability has those of capacity.
var codes = map[driver.Class][]string{
	driver.ClassCapacity: {
		"ZONE_RESOURCE_POOL_EXHAUSTED", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "RESOURCE_POOL_EXHAUSTED",
		"RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", "IP_SPACE_EXHAUSTED", "IP_SPACE_EXHAUSTED_WITH_DETAILS",
	},
	driver.ClassQuota: {"QUOTA_EXCEEDED", "quotaExceeded", "limitExceeded", "LIMIT_EXCEEDED"},
	driver.ClassThrottle: {
		"rateLimitExceeded", "userRateLimitExceeded", "RATE_LIMIT_EXCEEDED", "resourceOperationRateExceeded", "RESOURCE_OPERATION_RATE_EXCEEDED",
	},
	driver.ClassAuth: {
		"authError", "forbidden", "insufficientPermissions", "accessNotConfigured", "required", "SERVICE_DISABLED",
		"PERMISSIONS_ERROR", "FORBIDDEN", "SERVICE_ACCOUNT_ACCESS_DENIED",
	},
	driver.ClassTerminal: {
		"invalid", "badRequest", "invalidParameter", "invalidResourceUsage", "uploadTooLarge", "parseError", "unsupportedOperation",
		"INVALID_FIELD_VALUE", "INVALID_USAGE", "UNSUPPORTED_OPERATION", "INVALID_PARAMETER",
	},
	driver.ClassUnresolved: {"RESOURCE_NOT_FOUND", "conditionNotMet", "CONDITION_NOT_MET", "kmsKeyNotFound"},
	driver.ClassNotFound:   {"notFound"},
	driver.ClassConflict:   {"alreadyExists", "RESOURCE_ALREADY_EXISTS"},
	driver.ClassRefused: {
		"resourceNotReady", "resourceInUseByAnotherResource", "RESOURCE_NOT_READY", "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
		"OPERATION_CANCELED_BY_USER", "INTERNAL_ERROR",
	},
}

// classOf returns the class of a code; empty if it is not known. What a spec names that is not there yet, and a machine type that a
// zone has not, are distinguished from what can never be right by the message alone.
func classOf(code, message string) driver.Class {
	for class, known := range codes {
		if !slices.Contains(known, code) {
			continue
		}
		if class == driver.ClassTerminal {
			return classOfInvalid(message)
		}
		return class
	}
	return ""
}

// unknownZone is in the message about a zone that there is not.
const unknownZone = "Unknown zone"

// noSuchType is in the message about a machine type that a zone does not have.
const noSuchType = "does not exist in zone"

func classOfInvalid(message string) driver.Class {
	switch {
	case strings.Contains(message, noSuchType):
		return driver.ClassCapacity
	case strings.Contains(message, "cannot be found"), strings.Contains(message, "was not found"), strings.Contains(message, unknownZone):
		return driver.ClassUnresolved
	}
	return driver.ClassTerminal
}

// onlyPlace returns whether the shortage is the subnetwork's and not that of the machine type in the zone.
func onlyPlace(code string) bool { return strings.HasPrefix(code, "IP_SPACE_EXHAUSTED") }

// quotaOfAll is in the message about a quota that no other machine type and no other zone of the region helps with. That of local SSDs
// is none: only some types have them.
var quotaOfAll = regexp.MustCompile(`(?i)(?:quota|limit) '(?:[A-Z0-9_]*_ADDRESSES|SSD_TOTAL_GB|DISKS_TOTAL_GB|INSTANCES|` +
	`MAX_INSTANCES_IN_[A-Z]+)'`)

// allTypes returns whether the quota that a message is about is the same for all machine types.
func allTypes(class driver.Class, message string) bool {
	return class == driver.ClassQuota && quotaOfAll.MatchString(message)
}

// refusal is the error of a call that was answered with a status that is no success. Compute Engine answers with 4xx before any
// effect; a 5xx may come after it, unless its reason is a shortage.
func refusal(name string, response *http.Response, content []byte) *driver.Error {
	var answer struct {
		Error struct {
			Message string
			Errors  []struct{ Reason, Message string }
		}
	}
	_ = json.Unmarshal(content, &answer) // A proxy may answer with something else: the status remains.
	status, code, message := response.StatusCode, "", answer.Error.Message
	if len(answer.Error.Errors) > 0 {
		code, message = answer.Error.Errors[0].Reason, cmp.Or(message, answer.Error.Errors[0].Message)
	}
	class := classOf(code, message)
	switch {
	case status == http.StatusTooManyRequests:
		class = driver.ClassThrottle
	case status >= 500 && class != driver.ClassCapacity || status == http.StatusRequestTimeout:
		class = driver.ClassUnknown
	case class == "" && status == http.StatusUnauthorized, class == "" && status == http.StatusForbidden:
		class = driver.ClassAuth
	case class == "" && status >= 400 && status < 500:
		class = driver.ClassRefused
	case class == "":
		class = driver.ClassUnknown
	}
	seconds, _ := strconv.Atoi(response.Header.Get("Retry-After"))
	return &driver.Error{
		Class: class, Operation: name, Code: code, OnlyPlace: onlyPlace(code), AllTypes: allTypes(class, message),
		RetryAfter: time.Duration(seconds) * time.Second,
		Err:        errors.New(cmp.Or(message, "Compute Engine answered "+strconv.Itoa(status)+" "+http.StatusText(status))),
	}
}

// refusedLate is the class of the failure of an operation: it has ended, so nothing of it is unknown. That the name was taken is found
// out by another attempt. A right that is missing is one on what the spec names, since the insertion itself was allowed: it can be
// granted, and until then the kit makes another attempt now and then.
func refusedLate(f failure) driver.Class {
	switch class := classOf(f.Code, f.Message); class {
	case "", driver.ClassConflict, driver.ClassNotFound:
		return driver.ClassRefused
	default:
		return class
	}
}

// ofSpec is the error of a launch, or of a list: what was not found is what its spec names.
func ofSpec(err error) error {
	var e *driver.Error
	if !errors.As(err, &e) || e.Class != driver.ClassNotFound {
		return err
	}
	unresolved := *e
	unresolved.Class = driver.ClassUnresolved
	return &unresolved
}

// withoutToken is the error of a call that was not sent, since there was no token for it: only a person can help if Google Cloud
// refuses one.
func withoutToken(name string, err error) error {
	var classed *driver.Error
	switch {
	case errors.As(err, &classed):
		return err
	case identity.AsInvalid(err) != nil:
		return driver.NewAuthError(name, "", err)
	}
	return driver.NewRefusedError(name, "", err)
}

// lost is the error of a call without an answer, or with half of one. It had no effect if it got no connection. The message does not
// change from call to call, since conditions show it, and has no address with a query in it.
func lost(name string, err error) error {
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return driver.NewRefusedError(name, "", errors.New("no connection to Compute Engine: check the network and --compute-endpoint"))
	case errors.Is(err, context.DeadlineExceeded):
		return driver.NewUnknownError(name, "", errors.New("no answer within the time limit"))
	}
	return driver.NewUnknownError(name, "", errors.New("the connection to Compute Engine broke before its answer was complete"))
}

// notFound is the error of a handle that leads to nothing.
func notFound(name string) error {
	return driver.NewNotFoundError(name, "", errors.New("there is no such instance"))
}
