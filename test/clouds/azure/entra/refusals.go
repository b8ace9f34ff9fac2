package entra

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// refusals are descriptions and kinds of errors by their codes, see
// https://learn.microsoft.com/entra/identity-platform/reference-error-codes.
var refusals = map[string]struct {
	status     int
	kind, text string
}{
	"AADSTS700016":  {http.StatusBadRequest, "unauthorized_client", "Application with identifier was not found in the directory."},
	"AADSTS7000215": {http.StatusUnauthorized, "invalid_client", "Invalid client secret provided."},
	"AADSTS700027": {http.StatusUnauthorized, "invalid_client", "The certificate with identifier used to sign the client assertion is not " +
		"registered on application."},
	"AADSTS70021": {http.StatusBadRequest, "invalid_request", "No matching federated identity record found for presented assertion."},
	"AADSTS90002": {http.StatusBadRequest, "invalid_request", "Tenant was not found."},
	"AADSTS70003": {http.StatusBadRequest, "unsupported_grant_type", "The app requested an unsupported grant type."},
	"AADSTS70011": {http.StatusBadRequest, "invalid_scope", "The scope of the request is none of /.default."},
	"AADSTS7000216": {http.StatusUnauthorized, "invalid_client", "'client_assertion', 'client_secret' or 'request' is required for the " +
		"'client_credentials' grant type."},
}

// hasTenant is true if an application, or a subscription, is in the tenant. The lock is held.
func (f *Front) hasTenant(tenant string) bool {
	for name := range f.apps {
		if strings.HasPrefix(name, strings.ToLower(tenant)+"/") {
			return true
		}
	}
	for _, t := range f.tenants {
		if strings.EqualFold(t, tenant) {
			return true
		}
	}
	return false
}

// hasDefaultScope is true if a scope is /.default of some resource, which applications ask for. Microsoft's own library adds others.
func hasDefaultScope(scopes string) bool {
	return slices.ContainsFunc(strings.Fields(scopes), func(s string) bool { return strings.HasSuffix(s, "/.default") })
}

// check returns what was presented, and the code of a refusal.
func check(app *Application, form url.Values) (by, code string) {
	if app == nil {
		return "", "AADSTS700016"
	}
	assertion := form.Get("client_assertion")
	thumbprint, signed := thumbprintOf(assertion)
	switch {
	case form.Get("client_secret") != "":
		if !slices.Contains(app.Secrets, form.Get("client_secret")) {
			return "secret", "AADSTS7000215"
		}
		return "secret", ""
	case assertion == "":
		return "", "AADSTS7000216"
	case signed:
		if !slices.Contains(app.Thumbprints, thumbprint) {
			return "certificate", "AADSTS700027"
		}
		return "certificate", ""
	case !slices.Contains(app.Tokens, assertion):
		return "token", "AADSTS70021"
	}
	return "token", ""
}
