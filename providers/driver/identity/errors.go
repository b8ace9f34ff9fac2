package identity

import "errors"

// Invalid is the error of an identity that cannot be used until a person changes it, its Secret, or what the cloud thinks of it.
// Nothing secret is in its message.
type Invalid struct {
	// Reason for the condition Ready of the identity.
	Reason string
	// Message names the field and says what to do.
	Message string
}

// Error returns the message.
func (e *Invalid) Error() string { return e.Message }

// NewInvalid returns an error with a reason for the condition Ready of the identity.
func NewInvalid(reason, message string) *Invalid { return &Invalid{Reason: reason, Message: message} }

// AsInvalid returns the Invalid in an error, or nil.
func AsInvalid(err error) *Invalid {
	var invalid *Invalid
	if errors.As(err, &invalid) {
		return invalid
	}
	return nil
}
