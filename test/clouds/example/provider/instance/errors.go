package instance

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// codes are those of calls and operations, by their class. Names that can never be right are terminal; what may be created later is
// unresolved. A creation that a deletion has cancelled, and a part that is still used, may be tried again.
var codes = map[driver.Class][]string{
	driver.ClassCapacity:   {"zone_exhausted", "type_not_in_zone", addressesExhausted},
	driver.ClassQuota:      {"quota_exceeded"},
	driver.ClassThrottle:   {"rate_limited"},
	driver.ClassAuth:       {"unauthenticated", "token_expired", "permission_denied"},
	driver.ClassTerminal:   {"invalid_argument", "zone_not_found", "type_not_found", "user_data_too_large", "deletion_protected"},
	driver.ClassUnresolved: {"image_not_found"},
	driver.ClassNotFound:   {"not_found"},
	driver.ClassConflict:   {"name_taken", "request_id_reused"},
	driver.ClassRefused:    {"cancelled", "resource_in_use"},
}

// addressesExhausted is the code of a shortage that does not depend on the machine type.
const addressesExhausted = "addresses_exhausted"

// classOf returns the class of a code; empty if it is not known.
func classOf(code string) driver.Class {
	for class, known := range codes {
		if slices.Contains(known, code) {
			return class
		}
	}
	return ""
}

// refusal is the error of a call that the cloud has answered with a status that is no success. The cloud answers with 4xx before any
// effect; a 5xx may come after it, unless the code is one of a shortage.
func refusal(operation string, status int, f failure) *driver.Error {
	class := classOf(f.Code)
	switch {
	case status == http.StatusTooManyRequests:
		class = driver.ClassThrottle
	case class == "" && status >= 400 && status < 500 && status != http.StatusRequestTimeout:
		class = driver.ClassRefused
	case class == "" || status >= 500 && class != driver.ClassCapacity:
		class = driver.ClassUnknown
	}
	message := cmp.Or(f.Message, "the cloud answered "+http.StatusText(status))
	return &driver.Error{Class: class, Operation: operation, Code: f.Code, OnlyPlace: f.Code == addressesExhausted, Err: errors.New(message)}
}

// refusedLate is the class of the failure of an operation: it has ended, so nothing of it is unknown.
func refusedLate(f failure) driver.Class { return cmp.Or(classOf(f.Code), driver.ClassRefused) }

// lost is the error of a call without an answer, or with half of one. It had no effect if it got no connection. The message does not change
// from call to call, since conditions show it, and has no address with a query in it.
func lost(operation string, err error) error {
	var dial *net.OpError
	switch {
	case errors.As(err, &dial) && dial.Op == "dial":
		return driver.NewRefusedError(operation, "", errors.New("no connection to the cloud: check its address and the network"))
	case errors.Is(err, context.DeadlineExceeded):
		return driver.NewUnknownError(operation, "", errors.New("no answer within the time limit"))
	}
	return driver.NewUnknownError(operation, "", errors.New("the connection to the cloud broke before its answer was complete"))
}

// notFound is the error of a handle that leads to nothing.
func notFound(operation string) error {
	return driver.NewNotFoundError(operation, "", errors.New("there is no such machine"))
}
