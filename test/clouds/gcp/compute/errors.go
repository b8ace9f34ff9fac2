package compute

import (
	"fmt"
	"net/http"
)

// apiError is an error answer: https://cloud.google.com/compute/docs/reference/rest/v1 has the body, with a list of
// errors inside the error.
type apiError struct {
	status   int
	reason   string
	message  string
	domain   string
	location string
}

func (e *apiError) Error() string { return e.reason + ": " + e.message }

func fail(status int, reason, format string, arguments ...any) *apiError {
	return &apiError{status: status, reason: reason, message: fmt.Sprintf(format, arguments...), domain: "global"}
}

// invalid is the refusal of a field's value.
func invalid(field, value, format string, arguments ...any) *apiError {
	return fail(http.StatusBadRequest, "invalid", "Invalid value for field '%s': '%s'. %s", field, value, fmt.Sprintf(format, arguments...))
}

func notFound(path string) *apiError {
	return fail(http.StatusNotFound, "notFound", "The resource '%s' was not found", path)
}

// statuses are the HTTP statuses of reasons that tests inject.
var statuses = map[string]int{
	"authError": http.StatusUnauthorized, "forbidden": http.StatusForbidden, "rateLimitExceeded": http.StatusForbidden,
	"quotaExceeded": http.StatusForbidden, "notFound": http.StatusNotFound, "alreadyExists": http.StatusConflict,
	"conditionNotMet": http.StatusPreconditionFailed, "invalid": http.StatusBadRequest, "resourceNotReady": http.StatusBadRequest,
	"backendError": http.StatusServiceUnavailable, "internalError": http.StatusInternalServerError, "badGateway": http.StatusBadGateway,
}

func (e *apiError) body() map[string]any {
	item := map[string]any{"message": e.message, "domain": e.domain, "reason": e.reason}
	if e.location != "" {
		item["location"], item["locationType"] = e.location, "header"
	}
	return map[string]any{"error": map[string]any{"code": e.status, "message": e.message, "errors": []any{item}}}
}
