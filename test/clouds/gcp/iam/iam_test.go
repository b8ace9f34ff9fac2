package iam_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	clocktesting "k8s.io/utils/clock/testing"

	"millwright.dev/test/clouds/gcp/iam"
)

const (
	platform = "https://www.googleapis.com/auth/cloud-platform"
	audience = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/one"
	account  = "nodes@project.iam.gserviceaccount.com"
	path     = "/v1/projects/-/serviceAccounts/" + account + ":generateAccessToken"
)

type fixture struct {
	*WithT
	clock *clocktesting.FakePassiveClock
	iam   *iam.Service
}

func newFixture(t *testing.T) *fixture {
	t.Helper()
	f := &fixture{WithT: NewWithT(t), clock: clocktesting.NewFakePassiveClock(time.Unix(1e9, 0))}
	f.iam = iam.New(f.clock)
	f.iam.SetPool(audience, map[string]string{"subject": "principal://one"})
	f.iam.SetCreators(account, "principal://one")
	return f
}

// post returns the status and a field of the answer.
func (f *fixture) post(path, contentType, token, body, field string) (status int, value string) {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Authorization", "Bearer "+token)
	w := httptest.NewRecorder()
	f.iam.ServeHTTP(w, r)
	var answer map[string]any
	f.Expect(json.Unmarshal(w.Body.Bytes(), &answer)).To(Succeed())
	value, _ = answer[field].(string)
	return w.Code, value
}

// exchange is the request of https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token, with a parameter changed.
func (f *fixture) exchange(field, parameter, value string) (int, string) {
	form := url.Values{
		"grant_type": {"urn:ietf:params:oauth:grant-type:token-exchange"}, "audience": {audience}, "scope": {platform},
		"requested_token_type": {"urn:ietf:params:oauth:token-type:access_token"},
		"subject_token_type":   {"urn:ietf:params:oauth:token-type:jwt"}, "subject_token": {"subject"},
	}
	form.Set(parameter, value)
	return f.post("/v1/token", "application/x-www-form-urlencoded", "", form.Encode(), field)
}

func TestTokensAreExchanged(t *testing.T) {
	f := newFixture(t)
	status, issued := f.exchange("issued_token_type", "options", "")
	f.Expect([]any{status, issued}).To(Equal([]any{200, "urn:ietf:params:oauth:token-type:access_token"}))
	for parameter, code := range map[string]string{
		"grant_type": "invalid_request", "requested_token_type": "invalid_request", "subject_token_type": "invalid_request",
		"audience": "invalid_target", "subject_token": "invalid_grant",
	} {
		status, got := f.exchange("error", parameter, "wrong")
		f.Expect([]any{status, got}).To(Equal([]any{400, code}), parameter)
	}
}

// TestServiceAccountsAreImpersonated as
// https://cloud.google.com/iam/docs/reference/credentials/rest/v1/projects.serviceAccounts/generateAccessToken has it: for an hour unless
// less is requested, and not with a token that has expired.
func TestServiceAccountsAreImpersonated(t *testing.T) {
	f := newFixture(t)
	_, token := f.exchange("access_token", "options", "")
	generate := func(body string) (int, string) { return f.post(path, "application/json", token, body, "expireTime") }
	scope := `{"scope":["` + platform + `"]`
	for body, lasts := range map[string]time.Duration{scope + `}`: time.Hour, scope + `,"lifetime":"600s"}`: 10 * time.Minute} {
		status, expires := generate(body)
		f.Expect([]any{status, expires}).To(Equal([]any{200, f.clock.Now().Add(lasts).UTC().Format(time.RFC3339)}), body)
	}
	for _, body := range []string{scope + `,"lifetime":"7200s"}`, scope + `,"lifetime":"-1s"}`, `{"scope":[]}`, `{`} {
		status, _ := generate(body)
		f.Expect(status).To(Equal(400), body)
	}
	f.iam.SetCreators(account)
	status, _ := generate(scope + `}`)
	f.Expect(status).To(Equal(403))
	f.clock.SetTime(f.clock.Now().Add(time.Hour))
	status, _ = generate(scope + `}`)
	f.Expect(status).To(Equal(401), "the caller's token has expired")
}
