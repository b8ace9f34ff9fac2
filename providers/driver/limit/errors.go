package limit

import (
	"time"

	"github.com/pkg/errors"

	"millwright.dev/providers/driver"
)

// uncalledError is the cause in the errors of calls that the Limiter has not sent. Its message does not change while the
// reason is the same, since it ends in conditions.
type uncalledError struct {
	message string
	cause   error
}

// Error implements error.
func (e *uncalledError) Error() string {
	if e.cause == nil {
		return e.message
	}
	return e.message + ": " + e.cause.Error()
}

// Unwrap returns why the call was not sent.
func (e *uncalledError) Unwrap() error { return e.cause }

// closed is the error while the kind is closed.
func closed(kind driver.CallKind, left time.Duration, refusal error) error {
	return driver.NewThrottleError(string(kind), "", left,
		&uncalledError{message: "calls are paused on this side, since the cloud has throttled them", cause: refusal})
}

// paced is the error if the turn comes too late.
func paced(kind driver.CallKind, wait time.Duration) error {
	return driver.NewThrottleError(string(kind), "", wait,
		&uncalledError{message: "calls are paced on this side to stay within the cloud's limit, and the turn of this one comes after its deadline"})
}

// uncalled is the error if the context ends before the turn.
func uncalled(kind driver.CallKind, err error) error {
	return driver.NewRefusedError(string(kind), "", &uncalledError{message: "the call was not made: it has waited for its turn", cause: err})
}

// assess returns whether the cloud has certainly admitted a call, and the throttle that counts most among its errors.
func assess(errs []error) (admitted bool, throttle error) {
	for _, err := range errs {
		var own *uncalledError
		if errors.As(err, &own) {
			continue
		}
		switch driver.ClassOf(err) {
		case driver.ClassThrottle:
			if throttle == nil || driver.RetryAfterOf(err) > driver.RetryAfterOf(throttle) {
				throttle = err
			}
		case driver.ClassUnknown, driver.ClassRefused:
		default:
			admitted = true
		}
	}
	return admitted, throttle
}
