// Package entra simulates the part of Microsoft Entra ID, and of managed identities, that a machine provider gets its tokens from: the
// client credentials flow with a secret, a certificate or a federated token, and the endpoint for managed identities of a host. Where it
// and the documentation of Microsoft disagree, it is wrong.
package entra

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Application is a service principal in a tenant.
type Application struct {
	// Tenant, ClientID and ObjectID are GUIDs.
	Tenant, ClientID, ObjectID string
	// Secrets are those that are valid.
	Secrets []string
	// Thumbprints are the SHA-256 digests of its certificates, in base64url. Signatures are not checked.
	Thumbprints []string
	// Tokens are the federated tokens that are taken for it. A real one is checked against issuer, subject and audience.
	Tokens []string
	// Subscriptions are those in which it has a role.
	Subscriptions []string
}

// Call is one request for a token, without its secrets.
type Call struct {
	Tenant, ClientID string
	// By is how it has authenticated: secret, certificate, token or managedIdentity.
	By     string
	Status int
	// Code of a refusal, such as AADSTS7000215.
	Code string
}

// Front is an http.Handler: login.microsoftonline.com, and below /msi/token the endpoint of managed identities.
type Front struct {
	clock clock.PassiveClock

	mu      sync.Mutex
	apps    map[string]*Application
	tenants map[string]string
	managed *Application
	calls   []Call
	issued  map[string]*grant
	hang    chan struct{}
}

// grant is what a token is for.
type grant struct {
	app     Application
	expires time.Time
	revoked bool
}

// lifetime of tokens; Entra ID's is 60 to 90 minutes.
const lifetime = time.Hour

// New returns a Front without applications.
func New(clk clock.PassiveClock) *Front {
	return &Front{clock: clk, apps: map[string]*Application{}, tenants: map[string]string{}, issued: map[string]*grant{}}
}

// SetApplication adds an application, or changes it.
func (f *Front) SetApplication(app Application) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.apps[key(app.Tenant, app.ClientID)] = &app
}

// SetManagedIdentity has the endpoint of managed identities issue its tokens.
func (f *Front) SetManagedIdentity(app Application) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.managed = &app
}

// SetTenant sets which tenant a subscription trusts.
func (f *Front) SetTenant(subscription, tenant string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.tenants[strings.ToLower(subscription)] = tenant
}

// RevokeTokens revokes all tokens that were issued so far.
func (f *Front) RevokeTokens() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, g := range f.issued {
		g.revoked = true
	}
}

// Hang has requests for tokens wait until release is called, or the caller has gone.
func (f *Front) Hang() (release func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	hang := make(chan struct{})
	f.hang = hang
	return sync.OnceFunc(func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.hang = nil
		close(hang)
	})
}

// Calls are the requests for tokens so far.
func (f *Front) Calls() []Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// Authorize returns the caller with a token to Azure Resource Manager: arm.Options.Authorize. code is that of a refusal.
func (f *Front) Authorize(token, subscription string) (caller, code string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	g := f.issued[token]
	tenant := f.tenants[strings.ToLower(subscription)]
	switch {
	case g == nil || g.revoked:
		return "", "InvalidAuthenticationToken"
	case f.clock.Now().After(g.expires):
		return g.app.ClientID, "ExpiredAuthenticationToken"
	case subscription != "" && tenant != "" && tenant != g.app.Tenant:
		return g.app.ClientID, "InvalidAuthenticationTokenTenant"
	case subscription != "" && !slices.ContainsFunc(g.app.Subscriptions, func(s string) bool { return strings.EqualFold(s, subscription) }):
		return g.app.ClientID, "AuthorizationFailed"
	}
	return g.app.ClientID, ""
}

func key(tenant, client string) string { return strings.ToLower(tenant + "/" + client) }

// ServeHTTP answers /<tenant>/v2.0/.well-known/openid-configuration, /<tenant>/oauth2/v2.0/token and /msi/token.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	f.mu.Lock()
	hang := f.hang
	f.mu.Unlock()
	if hang != nil {
		select {
		case <-hang:
		case <-r.Context().Done():
			return
		}
	}
	tenant, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	switch {
	case r.URL.Path == "/msi/token":
		f.serveManaged(w, r)
	case rest == "v2.0/.well-known/openid-configuration" && r.Method == http.MethodGet:
		base := "https://" + r.Host + "/" + tenant
		writeJSON(w, http.StatusOK, map[string]any{
			"token_endpoint": base + "/oauth2/v2.0/token", "authorization_endpoint": base + "/oauth2/v2.0/authorize", "issuer": base + "/v2.0",
		})
	case rest == "oauth2/v2.0/token" && r.Method == http.MethodPost:
		f.serveToken(w, r, tenant)
	default:
		http.NotFound(w, r)
	}
}

func (f *Front) serveToken(w http.ResponseWriter, r *http.Request, tenant string) {
	_ = r.ParseForm()
	client := r.PostForm.Get("client_id")
	f.mu.Lock()
	app := f.apps[key(tenant, client)]
	by, code := check(app, r.PostForm)
	switch {
	case r.PostForm.Get("grant_type") != "client_credentials":
		by, code = "", "AADSTS70003"
	case app == nil && !f.hasTenant(tenant):
		by, code = "", "AADSTS90002"
	case !hasDefaultScope(r.PostForm.Get("scope")):
		by, code = "", "AADSTS70011"
	}
	call := Call{Tenant: tenant, ClientID: client, By: by, Status: http.StatusOK, Code: code}
	var token string
	if code == "" {
		token = f.issue(app)
	} else {
		call.Status = refusals[code].status
	}
	f.calls = append(f.calls, call)
	f.mu.Unlock()
	if code != "" {
		e := refusals[code]
		number, _ := strconv.Atoi(strings.TrimPrefix(code, "AADSTS"))
		writeJSON(w, e.status, map[string]any{
			"error": e.kind, "error_description": code + ": " + e.text + " Trace ID: " + tenant + " Correlation ID: " + client + " Timestamp: " +
				f.clock.Now().UTC().Format(time.DateTime) + "Z", "error_codes": []int{number},
		})
		return
	}
	writeJSON(w, http.StatusOK, map[string]any{"token_type": "Bearer", "expires_in": int(lifetime.Seconds()), "access_token": token})
}

// thumbprintOf returns the certificate that has signed an assertion; false if it is the token of another issuer.
func thumbprintOf(assertion string) (string, bool) {
	header, _, _ := strings.Cut(assertion, ".")
	raw, err := base64.RawURLEncoding.DecodeString(header)
	var fields struct {
		Thumbprint string `json:"x5t#S256"`
	}
	if err != nil || json.Unmarshal(raw, &fields) != nil {
		return "", false
	}
	// Microsoft's own library writes it in the other alphabet of base64, which is accepted too.
	return strings.NewReplacer("+", "-", "/", "_", "=", "").Replace(fields.Thumbprint), fields.Thumbprint != ""
}

// issue returns a token: a JWT without a signature.
func (f *Front) issue(app *Application) string {
	expires := f.clock.Now().Add(lifetime)
	encode := func(v any) string {
		raw, _ := json.Marshal(v)
		return base64.RawURLEncoding.EncodeToString(raw)
	}
	token := strings.Join([]string{encode(map[string]string{"alg": "none", "typ": "JWT"}), encode(map[string]any{
		"aud": "https://management.azure.com", "tid": app.Tenant, "oid": app.ObjectID, "appid": app.ClientID, "exp": expires.Unix(),
		"uti": strconv.Itoa(len(f.issued)),
	}), "unsigned"}, ".")
	f.issued[token] = &grant{app: *app, expires: expires}
	return token
}

func writeJSON(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json; charset=utf-8")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}
