package driver

import (
	"errors"
	"fmt"
	"time"
)

// Class is what a failed call to the cloud means for the caller.
type Class string

const (
	// ClassCapacity means that the cloud has no room for this type of instance at this place now. Another place
	// may have; the next attempt goes there.
	ClassCapacity Class = "Capacity"
	// ClassQuota means that a quota of the account is used up. A launch is retried with the other types that the spec allows, and
	// slowly once none is left; see Error.AllTypes.
	ClassQuota Class = "Quota"
	// ClassThrottle means that there were too many calls. Retried with backoff.
	ClassThrottle Class = "Throttle"
	// ClassAuth means that credentials are missing, expired or too narrow. Retried slowly, since a person
	// repairs them.
	ClassAuth Class = "Auth"
	// ClassTerminal means that the request as such is refused. Not tried again until it changes.
	ClassTerminal Class = "Terminal"
	// ClassUnresolved means that something that the request names, or searches for, is not there or cannot be used now: an image,
	// a network, a role. The call has certainly had no effect. Retried slowly, since it may be created, shared or become
	// visible later. A name that can never be right is of class Terminal.
	ClassUnresolved Class = "Unresolved"
	// ClassNotFound means that the instance that the call is about does not exist.
	ClassNotFound Class = "NotFound"
	// ClassConflict means that there is something of that name already; whose is unknown. The call has created nothing. The kit finds
	// out what it is.
	ClassConflict Class = "Conflict"
	// ClassRefused means that the call has certainly had no effect, and that it may have one later: the cloud has answered
	// with a refusal of a kind that is not known, or was never asked. Retried with backoff.
	ClassRefused Class = "Refused"
	// ClassUnknown is anything else, above all calls whose answer was lost. The call may have taken
	// effect. Retried with backoff.
	ClassUnknown Class = "Unknown"
)

// Error is a failed call to a cloud. The message must hold no secret: it is shown in conditions
// and events.
type Error struct {
	// Class of the error.
	Class Class
	// Operation is the cloud's name of the call, for example RunInstances.
	Operation string
	// Code is the cloud's own code of the error.
	Code string
	// RetryAfter is how long the cloud asks to wait, if it does.
	RetryAfter time.Duration
	// OnlyPlace is true if the capacity or the quota that lacks is the place's own, for example addresses of a subnet, and not that of
	// the instance type.
	OnlyPlace bool
	// AllTypes is true if the quota that is used up is the same for every instance type and place, for example one on volumes. Without it,
	// other types are tried.
	AllTypes bool
	// OnlyTerms is true if there is capacity that the launch does not accept, by the Terms of its Candidate: others get it.
	OnlyTerms bool
	// Err is the cause.
	Err error
}

// Error returns the operation, the code and the cause's message, without those that are empty.
func (e *Error) Error() string {
	message := fmt.Sprint(e.Err)
	for _, prefix := range []string{e.Code, e.Operation} {
		if prefix != "" {
			message = prefix + ": " + message
		}
	}
	return message
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// NewCapacityError returns an error of class Capacity.
func NewCapacityError(operation, code string, err error) *Error {
	return &Error{Class: ClassCapacity, Operation: operation, Code: code, Err: err}
}

// NewQuotaError returns an error of class Quota.
func NewQuotaError(operation, code string, err error) *Error {
	return &Error{Class: ClassQuota, Operation: operation, Code: code, Err: err}
}

// NewThrottleError returns an error of class Throttle; after is zero unless the cloud has answered how long
// to wait.
func NewThrottleError(operation, code string, after time.Duration, err error) *Error {
	return &Error{Class: ClassThrottle, Operation: operation, Code: code, RetryAfter: after, Err: err}
}

// NewAuthError returns an error of class Auth.
func NewAuthError(operation, code string, err error) *Error {
	return &Error{Class: ClassAuth, Operation: operation, Code: code, Err: err}
}

// NewTerminalError returns an error of class Terminal.
func NewTerminalError(operation, code string, err error) *Error {
	return &Error{Class: ClassTerminal, Operation: operation, Code: code, Err: err}
}

// NewUnresolvedError returns an error of class Unresolved.
func NewUnresolvedError(operation, code string, err error) *Error {
	return &Error{Class: ClassUnresolved, Operation: operation, Code: code, Err: err}
}

// NewNotFoundError returns an error of class NotFound.
func NewNotFoundError(operation, code string, err error) *Error {
	return &Error{Class: ClassNotFound, Operation: operation, Code: code, Err: err}
}

// NewConflictError returns an error of class Conflict.
func NewConflictError(operation, code string, err error) *Error {
	return &Error{Class: ClassConflict, Operation: operation, Code: code, Err: err}
}

// NewRefusedError returns an error of class Refused.
func NewRefusedError(operation, code string, err error) *Error {
	return &Error{Class: ClassRefused, Operation: operation, Code: code, Err: err}
}

// NewUnknownError returns an error of class Unknown.
func NewUnknownError(operation, code string, err error) *Error {
	return &Error{Class: ClassUnknown, Operation: operation, Code: code, Err: err}
}

// ClassOf returns the class of err; Unknown if it has none, and "" for nil.
func ClassOf(err error) Class {
	if err == nil {
		return ""
	}
	var e *Error
	if errors.As(err, &e) {
		return e.Class
	}
	return ClassUnknown
}

// RetryAfterOf returns how long the cloud asked to wait, or zero.
func RetryAfterOf(err error) time.Duration {
	var e *Error
	if errors.As(err, &e) {
		return e.RetryAfter
	}
	return 0
}

// IsCapacity returns whether err is of class Capacity.
func IsCapacity(err error) bool { return ClassOf(err) == ClassCapacity }

// IsQuota returns whether err is of class Quota.
func IsQuota(err error) bool { return ClassOf(err) == ClassQuota }

// IsThrottle returns whether err is of class Throttle.
func IsThrottle(err error) bool { return ClassOf(err) == ClassThrottle }

// IsAuth returns whether err is of class Auth.
func IsAuth(err error) bool { return ClassOf(err) == ClassAuth }

// IsTerminal returns whether err is of class Terminal.
func IsTerminal(err error) bool { return ClassOf(err) == ClassTerminal }

// IsUnresolved returns whether err is of class Unresolved.
func IsUnresolved(err error) bool { return ClassOf(err) == ClassUnresolved }

// IsNotFound returns whether err is of class NotFound.
func IsNotFound(err error) bool { return ClassOf(err) == ClassNotFound }

// IsConflict returns whether err is of class Conflict.
func IsConflict(err error) bool { return ClassOf(err) == ClassConflict }

// IsRefused returns whether err is of class Refused.
func IsRefused(err error) bool { return ClassOf(err) == ClassRefused }

// IsUnknown returns whether err is of class Unknown: the call may have taken effect.
func IsUnknown(err error) bool { return ClassOf(err) == ClassUnknown }

// WithoutEffect returns the error of a call that only reads: one of class Unknown becomes Refused, since a lost answer of such
// a call leaves nothing behind.
func WithoutEffect(err error) error {
	if err == nil || !IsUnknown(err) {
		return err
	}
	var e *Error
	if !errors.As(err, &e) {
		return NewRefusedError("", "", err)
	}
	refused := *e
	refused.Class = ClassRefused
	return &refused
}

// IgnoreNotFound returns nil for an error of class NotFound, else err.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}
