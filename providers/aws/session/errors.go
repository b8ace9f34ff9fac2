package session

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/aws/smithy-go"
	smithyhttp "github.com/aws/smithy-go/transport/http"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// passing are the codes of refusals by STS that pass by themselves: see "Common errors" of its API reference.
var passing = []string{
	"Throttling", "ThrottlingException", "TooManyRequestsException", "RequestTimeout", "IDPCommunicationError", "ServiceUnavailable",
}

// explain returns what a failed call to STS means for the identity: an Invalid if STS refuses, with its words, else an error that passes.
// what reports what was asked for.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if invalid := identity.AsInvalid(err); invalid != nil {
		return invalid
	}
	var api smithy.APIError
	var answer *smithyhttp.ResponseError
	switch {
	case errors.As(err, &api) && errors.As(err, &answer) && refuses(answer.HTTPStatusCode()) && !slices.Contains(passing, api.ErrorCode()):
		return identity.NewInvalid(driverv1.CredentialsRefusedReason, fmt.Sprintf("STS refuses %s: %s: %s. Check the credentials, and the trust and the "+
			"rights of the role", what, api.ErrorCode(), firstLine(api.ErrorMessage())))
	case errors.As(err, &api):
		return fmt.Errorf("%s: STS answers %s%w", what, api.ErrorCode(), passed{err})
	case errors.Is(err, context.DeadlineExceeded), isTimeout(err):
		return fmt.Errorf("%s: no answer from STS within the time limit%w", what, passed{err})
	}
	return fmt.Errorf("%s: no answer from STS, or nothing to sign the request with%w", what, passed{err})
}

// firstLine is what STS says. Where it refuses a signature, the canonical request follows, with the session token as one of its headers.
func firstLine(message string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(message), "\n")
	return strings.TrimRight(line, ". \r")
}

func refuses(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

func isTimeout(err error) bool {
	var timeout interface{ Timeout() bool }
	return errors.As(err, &timeout) && timeout.Timeout()
}

// passed keeps a cause for errors.As without its text, which differs each time and may quote what credentials were read from.
type passed struct{ err error }

func (passed) Error() string { return "" }

func (p passed) Unwrap() error { return p.err }

// refusalCodes are the codes with which AWS refuses the credentials as such, and not what is asked for with them.
var refusalCodes = []string{
	"AuthFailure", "ExpiredToken", "ExpiredTokenException", "InvalidAccessKeyId", "InvalidClientTokenId", "RequestExpired",
	"SignatureDoesNotMatch", "UnrecognizedClientException",
}

// refusesCredentials returns whether AWS has answered that the credentials are none, or not any more.
func refusesCredentials(err error) bool {
	var api smithy.APIError
	return errors.As(err, &api) && slices.Contains(refusalCodes, api.ErrorCode())
}
