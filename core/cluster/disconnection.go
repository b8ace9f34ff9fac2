package cluster

import (
	"errors"
	"net"
	"net/url"
	"slices"
	"strings"

	shared "millwright.dev/contracts/remote"
)

// maxCause is how much of a cause is repeated, in bytes: what a peer answers may be as long as it likes.
const maxCause = 300

// explain describes why there is no connection: why the kubeconfig could not be created is more useful than that there is none.
func (s *scope) explain() string {
	if s.kubeconfigTrouble != "" {
		return s.kubeconfigTrouble
	}
	return explain(s.disconnection)
}

// together puts messages on lines of their own; empty ones are left out.
func together(messages ...string) string {
	return strings.Join(slices.DeleteFunc(messages, func(m string) bool { return m == "" }), "\n")
}

// explain describes why there is no connection: what failed, at which server, and the cause. The message stays the same as long
// as these do, since each change of it is a write: it has no local ports. It has no credentials: of the URL only the host.
func explain(e *shared.NotConnectedError) string {
	message, cause := e.Message, e.Unwrap()
	if e.Server != "" {
		message += " at " + e.Server
	}
	var request *url.Error
	if errors.As(cause, &request) {
		cause = request.Err
	}
	var operation *net.OpError
	if errors.As(cause, &operation) && operation.Err != nil {
		cause = operation.Err
	}
	if cause == nil {
		return message
	}
	return message + ": " + shortened(cause.Error())
}

// shortened cuts a text to maxCause bytes, at the beginning of a rune, and puts it on one line.
func shortened(text string) string {
	text = strings.Join(strings.Fields(text), " ")
	if len(text) <= maxCause {
		return text
	}
	return strings.ToValidUTF8(text[:maxCause], "") + "…"
}
