package identity

import "millwright.dev/providers/driver"

// NotSent is the error of a call that was not sent since there are no credentials for it: the cloud refuses those of the identity if err
// is an Invalid, else they are not available now. The message says little to those who use an identity; its condition Ready says the rest.
func NotSent(err error) error {
	if AsInvalid(err) != nil {
		return driver.NewAuthError("", "", &unusable{"the credentials of the identity are refused; see its condition Ready", err})
	}
	return driver.NewRefusedError("", "", &unusable{"the credentials of the identity are not available now; see its condition Ready", err})
}

// unusable keeps why there are no credentials for errors.As and logs, and says no more than its message.
type unusable struct {
	message string
	err     error
}

func (e *unusable) Error() string { return e.message }

func (e *unusable) Unwrap() error { return e.err }
