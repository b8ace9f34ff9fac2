package credentials

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/pkg/errors"
	"golang.org/x/oauth2"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

func invalid(format string, args ...any) error {
	return identity.NewInvalid(driverv1.CredentialsInvalidReason, fmt.Sprintf(format, args...))
}

func notAllowed(format string, args ...any) error {
	return identity.NewInvalid(driverv1.CredentialsNotAllowedReason, fmt.Sprintf(format, args...))
}

// explain returns what a failed request for a token means: an identity.Invalid if Google Cloud refuses it, with its words, else an error
// that passes. what says what was asked for. Nothing of the error's own text is shown, which may have an address or the body of an answer.
func explain(what string, err error) error {
	if err == nil {
		return nil
	}
	if known := identity.AsInvalid(err); known != nil {
		return known
	}
	var refused *oauth2.RetrieveError
	var timeout interface{ Timeout() bool }
	switch {
	case errors.As(err, &refused) && refused.Response != nil:
		return refusal(what, refused.Response.StatusCode, refused.Body)
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		return errors.Errorf("%s: no answer from Google Cloud within the time limit", what)
	}
	return errors.Errorf("%s: no access token could be obtained from Google Cloud: check the network and the credentials", what)
}

// refusal is the error of a request for a token that was answered with a status that is no success.
func refusal(what string, status int, body []byte) error {
	answer := strings.TrimSpace(fmt.Sprintf("%d %s %s", status, http.StatusText(status), words(body)))
	if status < 400 || status >= 500 || status == http.StatusTooManyRequests || status == http.StatusRequestTimeout {
		return errors.Errorf("%s: Google Cloud answers %s", what, answer)
	}
	return identity.NewInvalid(driverv1.CredentialsRefusedReason, fmt.Sprintf("Google Cloud refuses %s: %s. Check the credentials, that the "+
		"account is enabled, and who may impersonate it", what, strings.TrimRight(answer, ". ")))
}

// classed is an error of a request for a token with a class, for metrics.
func classed(err error) error {
	if identity.AsInvalid(err) != nil {
		return driver.NewAuthError("Token", "", err)
	}
	return err
}

// maxWords is how much of what Google Cloud says is shown.
const maxWords = 512

// words are those of an error answer: of OAuth (error, error_description), or of the APIs (error.status, error.message). The rest of the
// body is the server's and may hold anything.
func words(body []byte) string {
	var oauth struct {
		Error       string
		Description string `json:"error_description"`
	}
	var api struct {
		Error struct{ Status, Message string }
	}
	_ = json.Unmarshal(body, &api) // Of both forms one fails at least.
	_ = json.Unmarshal(body, &oauth)
	detail := cmp.Or(strings.TrimSpace(oauth.Error+" "+oauth.Description), strings.TrimSpace(api.Error.Status+" "+api.Error.Message))
	detail = strings.Join(strings.Fields(detail), " ")
	return detail[:min(len(detail), maxWords)]
}
