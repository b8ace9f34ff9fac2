package ec2

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
)

// apiError is an error answer: a code of
// https://docs.aws.amazon.com/AWSEC2/latest/APIReference/errors-overview.html with its HTTP status.
type apiError struct {
	status  int
	code    string
	message string
}

func (e *apiError) Error() string { return e.code + ": " + e.message }

// fail returns an error answer with the status that EC2 sends with the code.
func fail(code, format string, args ...any) *apiError {
	return &apiError{status: statusOf(code), code: code, message: fmt.Sprintf(format, args...)}
}

// statusOf is the HTTP status of an error code. Client errors have 400 but for those about the
// caller's identity; server errors, capacity among them, have 500, throttling and overload 503.
func statusOf(code string) int {
	switch code {
	case "AuthFailure":
		return http.StatusUnauthorized
	case "MissingAuthenticationToken", "UnauthorizedOperation", "OptInRequired", "Blocked":
		return http.StatusForbidden
	case "DryRunOperation":
		return http.StatusPreconditionFailed
	case "RequestLimitExceeded", "Unavailable", "ServiceUnavailable":
		return http.StatusServiceUnavailable
	case "InternalError", "InternalFailure", "InsufficientInstanceCapacity", "InsufficientHostCapacity",
		"InsufficientAddressCapacity", "InsufficientCapacity", "InsufficientReservedInstanceCapacity",
		"InsufficientVolumeCapacity":
		return http.StatusInternalServerError
	}
	return http.StatusBadRequest
}

var errDryRun = fail("DryRunOperation", "Request would have succeeded, but DryRun flag is set.")

func missingParameter(name string) *apiError {
	return fail("MissingParameter", "The request must contain the parameter %s", name)
}

func invalidValue(value, parameter, why string) *apiError {
	return fail("InvalidParameterValue", "Value (%s) for parameter %s is invalid. %s", value, parameter, why)
}

// notFound words a missing resource as EC2 does, for one and for several.
func notFound(code, noun string, ids []string) *apiError {
	if len(ids) == 1 {
		return fail(code, "The %s ID '%s' does not exist", noun, ids[0])
	}
	return fail(code, "The %s IDs '%s' do not exist", noun, strings.Join(ids, ", "))
}

// asAPIError gives every error an answer.
func asAPIError(err error) *apiError {
	var answer *apiError
	if errors.As(err, &answer) {
		return answer
	}
	return fail("InternalError", "An internal error has occurred: %v", err)
}
