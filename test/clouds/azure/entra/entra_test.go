package entra_test

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

	"millwright.dev/test/clouds/azure/entra"
)

// TestTokenRequests are answered as https://learn.microsoft.com/entra/identity-platform/v2-oauth2-client-creds-grant-flow has it.
func TestTokenRequests(t *testing.T) {
	front := entra.New(clocktesting.NewFakePassiveClock(time.Unix(1e9, 0)))
	front.SetApplication(entra.Application{Tenant: "tenant", ClientID: "client", Secrets: []string{"right"}, Subscriptions: []string{"one"}})
	right := url.Values{
		"grant_type": {"client_credentials"}, "client_id": {"client"}, "client_secret": {"right"},
		"scope": {"https://management.azure.com/.default openid"},
	}
	for name, c := range map[string]struct {
		tenant, parameter, value, kind string
		status, number                 int
	}{
		"right":      {"tenant", "", "", "", http.StatusOK, 0},
		"secret":     {"tenant", "client_secret", "wrong", "invalid_client", http.StatusUnauthorized, 7000215},
		"no secret":  {"tenant", "client_secret", "", "invalid_client", http.StatusUnauthorized, 7000216},
		"client":     {"tenant", "client_id", "other", "unauthorized_client", http.StatusBadRequest, 700016},
		"tenant":     {"other", "", "", "invalid_request", http.StatusBadRequest, 90002},
		"grant type": {"tenant", "grant_type", "password", "unsupported_grant_type", http.StatusBadRequest, 70003},
		"scope":      {"tenant", "scope", "https://management.azure.com/user_impersonation", "invalid_scope", http.StatusBadRequest, 70011},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			form := url.Values{}
			for k, v := range right {
				form[k] = v
			}
			if c.parameter != "" {
				form.Set(c.parameter, c.value)
			}
			r := httptest.NewRequest(http.MethodPost, "/"+c.tenant+"/oauth2/v2.0/token", strings.NewReader(form.Encode()))
			r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
			w := httptest.NewRecorder()
			front.ServeHTTP(w, r)
			var answer struct {
				AccessToken string `json:"access_token"`
				Error       string
				Codes       []int `json:"error_codes"`
			}
			g.Expect(json.Unmarshal(w.Body.Bytes(), &answer)).To(Succeed())
			g.Expect(w.Code).To(Equal(c.status))
			g.Expect(answer.Error).To(Equal(c.kind))
			if c.number != 0 {
				g.Expect(answer.Codes).To(Equal([]int{c.number}))
				return
			}
			_, code := front.Authorize(answer.AccessToken, "one")
			g.Expect(code).To(BeEmpty())
			_, code = front.Authorize(answer.AccessToken, "another")
			g.Expect(code).To(Equal("AuthorizationFailed"))
		})
	}
}
