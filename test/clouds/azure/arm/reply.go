package arm

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"millwright.dev/test/clouds/simulator"
)

// reply is a successful answer.
type reply struct {
	status  int
	headers map[string]string
	body    any
}

func (a reply) write(w http.ResponseWriter, requestID string) {
	for key, value := range a.headers {
		w.Header().Set(key, value)
	}
	w.Header().Set("X-Ms-Request-Id", requestID)
	if a.body == nil {
		w.WriteHeader(a.status)
		return
	}
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(a.status)
	_ = json.NewEncoder(w).Encode(a.body)
}

func ok(body any) (reply, error) { return reply{status: http.StatusOK, body: body}, nil }

// failure is an error answer, see
// https://learn.microsoft.com/azure/azure-resource-manager/troubleshooting/common-deployment-errors.
type failure struct {
	status     int
	code       string
	message    string
	retryAfter time.Duration
}

func (f *failure) Error() string { return f.code + ": " + f.message }

func fail(status int, code, format string, args ...any) *failure {
	return &failure{status: status, code: code, message: fmt.Sprintf(format, args...)}
}

// badRequest is what a resource provider answers about a parameter.
func badRequest(format string, args ...any) *failure {
	return fail(http.StatusBadRequest, "InvalidParameter", format, args...)
}

// notFound is the answer about a resource that does not exist.
func notFound(in *request, resourceType string) *failure {
	return fail(http.StatusNotFound, "ResourceNotFound", "The Resource '%s/%s' under resource group '%s' was not found. "+
		"For more details please go to https://aka.ms/ARMResourceNotFoundFix", resourceType, in.name, in.group)
}

// asFailure gives every error an answer.
func asFailure(err error) *failure {
	var f *failure
	if errors.As(err, &f) {
		return f
	}
	return fail(http.StatusInternalServerError, "InternalServerError", "%v", err)
}

// errorBody is the body of an error answer and of a failed operation.
type errorBody struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func writeFailure(w http.ResponseWriter, f *failure, requestID string) {
	if f.retryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(int(f.retryAfter.Seconds())))
	}
	reply{status: f.status, headers: map[string]string{"X-Ms-Failure-Cause": "service"}, body: map[string]errorBody{"error": {f.code,
		f.message}}}.write(w, requestID)
}

// statuses are those of the codes that faults name without one.
var statuses = map[string]int{
	"AuthorizationFailed": http.StatusForbidden, "LinkedAuthorizationFailed": http.StatusForbidden,
	"AuthenticationFailed": http.StatusUnauthorized, "InvalidAuthenticationToken": http.StatusUnauthorized,
	"ExpiredAuthenticationToken": http.StatusUnauthorized,
	"TooManyRequests":            http.StatusTooManyRequests, "SubscriptionRequestsThrottled": http.StatusTooManyRequests,
	"OperationNotAllowed": http.StatusConflict,
	"SkuNotAvailable":     http.StatusConflict, "AllocationFailed": http.StatusConflict, "ZonalAllocationFailed": http.StatusConflict,
	"OverconstrainedAllocationRequest": http.StatusConflict, "OverconstrainedZonalAllocationRequest": http.StatusConflict,
	"QuotaExceeded": http.StatusConflict, "ScopeLocked": http.StatusConflict, "Conflict": http.StatusConflict,
	"ConflictingUserInput": http.StatusConflict,
	"ResourceNotFound":     http.StatusNotFound, "PlatformImageNotFound": http.StatusNotFound, "ImageNotFound": http.StatusNotFound,
	"PreconditionFailed": http.StatusPreconditionFailed, "InternalServerError": http.StatusInternalServerError,
	"ServiceUnavailable": http.StatusServiceUnavailable, "RetryableError": http.StatusConflict, "OperationPreempted": http.StatusConflict,
}

func injectedFailure(e *simulator.APIError) *failure {
	f := fail(http.StatusBadRequest, e.Code, "%s", e.Message)
	if status, known := statuses[e.Code]; known {
		f.status = status
	}
	if e.Status != 0 {
		f.status = e.Status
	}
	if e.Message == "" {
		f.message = "Injected by a test."
	}
	return f
}
