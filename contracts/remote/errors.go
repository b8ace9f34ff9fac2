package remote

import (
	"errors"
	"time"
)

// Reasons of NotConnectedError, in the form of condition reasons.
const (
	// NotDialledYet: the Cluster is new, or the process has just started.
	NotDialledYet = "NotConnectedYet"
	// KubeconfigMissing: the kubeconfig Secret does not exist or cannot be read.
	KubeconfigMissing = "KubeconfigMissing"
	// KubeconfigInvalid: the kubeconfig cannot be used, or uses something that is refused.
	KubeconfigInvalid = "KubeconfigInvalid"
	// Unreachable: the API server does not answer.
	Unreachable = "Unreachable"
	// Unauthorized: the API server does not accept the credentials, or they lack a permission.
	Unauthorized = "Unauthorized"
)

// NotConnectedError means that there is no connection to a target cluster at the moment, and why.
// A caller that gets it waits: subscribers are notified when there is a connection.
type NotConnectedError struct {
	// Reason is one of the constants above.
	Reason string
	// Message is what is wrong and, where someone must act, what to do.
	Message string
	// Server is the host and port of the API server; "" while it is unknown.
	Server string
	// LastSuccess is when the API server answered last; the start of this process when it never has.
	LastSuccess time.Time

	cause error
}

// Error returns the message with its cause.
func (e *NotConnectedError) Error() string {
	if e.cause != nil {
		return e.Message + ": " + e.cause.Error()
	}
	return e.Message
}

// Unwrap returns the cause.
func (e *NotConnectedError) Unwrap() error { return e.cause }

// IsNotConnected reports whether an error means that there is no connection to a target cluster.
func IsNotConnected(err error) bool {
	var not *NotConnectedError
	return errors.As(err, &not)
}
