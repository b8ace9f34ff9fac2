package credentials

import (
	"context"
	"net/http"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	"golang.org/x/oauth2"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/identity"
)

// TestRefusedTokens: what Google Cloud refuses is for a person, in its words and without the rest of its answer; what else goes wrong
// passes.
func TestRefusedTokens(t *testing.T) {
	retrieve := func(status int, body string) error {
		return &oauth2.RetrieveError{Response: &http.Response{StatusCode: status}, Body: []byte(body)}
	}
	for name, c := range map[string]struct {
		err     error
		refused bool
		says    string
	}{
		"OAuth":       {retrieve(400, `{"error": "invalid_grant", "error_description": "Invalid JWT Signature.", "secret": "hidden"}`), true, "400 Bad Request invalid_grant Invalid JWT Signature. "},
		"an API":      {retrieve(403, `{"error": {"code": 403, "status": "PERMISSION_DENIED", "message": "denied", "details": ["hidden"]}}`), true, "403 Forbidden PERMISSION_DENIED denied. "},
		"no JSON":     {retrieve(401, "<html>hidden"), true, "401 Unauthorized. "},
		"long words":  {retrieve(400, `{"error": "`+strings.Repeat("x", 4000)+`hidden"}`), true, "xxx"},
		"throttled":   {retrieve(429, `{"error": "slow_down"}`), false, "429 Too Many Requests slow_down"},
		"unavailable": {retrieve(503, "hidden"), false, "503 Service Unavailable"},
		"timeout":     {errors.Wrap(context.DeadlineExceeded, "Post https://hidden"), false, "within the time limit"},
		"no route":    {errors.New("Post https://token?hidden: no route"), false, "check the network"},
		"known":       {identity.NewInvalid(driverv1.CredentialsNotAllowedReason, "spec: a"), true, "spec: a"},
	} {
		g := NewWithT(t)
		err := explain("an access token", c.err)
		g.Expect(identity.AsInvalid(err) != nil).To(Equal(c.refused), name)
		g.Expect(err.Error()).To(And(ContainSubstring(c.says), Not(ContainSubstring("hidden"))), name)
		g.Expect(len(err.Error())).To(BeNumerically("<", 1000), name)
	}
	NewWithT(t).Expect(explain("x", nil)).To(Succeed())
}
