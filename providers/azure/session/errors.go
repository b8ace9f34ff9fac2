package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// passing are the codes of refusals by Microsoft Entra ID that pass by themselves: see
// https://learn.microsoft.com/entra/identity-platform/reference-error-codes.
var passing = []string{"AADSTS90033", "AADSTS90055", "AADSTS50196", "AADSTS1000001"}

// changing are the parts of messages that differ each time.
var changing = regexp.MustCompile(`(?s)[ \r\n]*(Trace ID:|Correlation ID:|Timestamp:).*`)

// Explain returns what a failed request for a token means for the identity: an Invalid if Microsoft Entra ID refuses, with its words, else
// an error that passes.
func Explain(err error) error {
	if err == nil {
		return nil
	}
	if invalid := identity.AsInvalid(err); invalid != nil {
		return invalid
	}
	var answer *azidentity.AuthenticationFailedError
	if errors.As(err, &answer) && answer.RawResponse != nil {
		code, message := wordsOf(answer.RawResponse)
		status := answer.RawResponse.StatusCode
		if refuses(status) && !slices.Contains(passing, code) {
			return identity.NewInvalid(driverv1.CredentialsRefusedReason, fmt.Sprintf("Microsoft Entra ID refuses the credentials: %s. Check tenant, client "+
				"and credentials, and whether they have expired", message))
		}
		return fmt.Errorf("the request for a token was answered with %d %s%w", status, code, passed{err})
	}
	return fmt.Errorf("no answer from Microsoft Entra ID, or from the endpoint of managed identities%w", passed{err})
}

// maxMessage is how much of a message is shown.
const maxMessage = 500

// wordsOf reads the code and the description of a refusal. What is no answer of Entra ID is not shown.
func wordsOf(response *http.Response) (code, message string) {
	var body struct {
		Error       string `json:"error"`
		Description string `json:"error_description"`
		Message     string `json:"message"`
	}
	if raw, err := runtime.Payload(response); err == nil {
		_ = json.Unmarshal(raw, &body) // A proxy may answer with something else: the status remains.
	}
	message = strings.TrimRight(changing.ReplaceAllString(strings.TrimSpace(body.Description+body.Message), ""), ". ")
	message = message[:min(len(message), maxMessage)]
	code, _, _ = strings.Cut(message, ":")
	if message == "" {
		message = strings.TrimSpace(fmt.Sprintf("%d %s %s", response.StatusCode, http.StatusText(response.StatusCode), body.Error))
	}
	return code, message
}

func refuses(status int) bool {
	return status >= 400 && status < 500 && status != http.StatusTooManyRequests && status != http.StatusRequestTimeout
}

// passed keeps a cause for errors.As without its text, which differs each time and may quote what credentials were read from.
type passed struct{ err error }

func (passed) Error() string { return "" }

func (p passed) Unwrap() error { return p.err }
