// Package iam simulates the services by which Google Cloud issues access tokens: to service accounts with a key (oauth2.googleapis.com), in
// exchange for tokens of others (sts.googleapis.com), and for service accounts that are impersonated (iamcredentials.googleapis.com); and
// which principals may use which project.
package iam

import (
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"k8s.io/utils/clock"
)

// Service is an http.Handler with the three services. It implements compute.Access.
type Service struct {
	clock clock.PassiveClock

	mu sync.Mutex
	// keys are public keys by the ID of the key, grants principals by project.
	keys   map[string]key
	grants map[string][]string
	// pools are the subjects' tokens that a provider of a pool accepts, with their principals; creators are who may impersonate whom.
	pools    map[string]map[string]string
	creators map[string][]string
	tokens   map[string]token
	count    int
	// held are the requests for tokens that wait until a channel is closed.
	held  map[string]chan struct{}
	calls []string
}

type key struct {
	email  string
	public *rsa.PublicKey
}

// token is one that was issued.
type token struct {
	principal string
	scopes    []string
	expires   time.Time
}

// New returns services without principals.
func New(clk clock.PassiveClock) *Service {
	return &Service{
		clock: clk, keys: map[string]key{}, grants: map[string][]string{}, pools: map[string]map[string]string{},
		creators: map[string][]string{}, tokens: map[string]token{}, held: map[string]chan struct{}{},
	}
}

// NewKey creates a key of a service account, and returns its file.
func (s *Service) NewKey(email string) map[string]string {
	private, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		panic(err) // The computer has no random numbers.
	}
	raw, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		panic(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.count++
	id := fmt.Sprintf("key-%d", s.count)
	s.keys[id] = key{email, &private.PublicKey}
	return map[string]string{
		"type": "service_account", "project_id": "simulated", "private_key_id": id, "client_email": email, "client_id": "1",
		"private_key": string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: raw})),
		"auth_uri":    "https://accounts.google.com/o/oauth2/auth", "token_uri": "https://oauth2.googleapis.com/token",
		"universe_domain": "googleapis.com",
	}
}

// RemoveKey deletes a key. Tokens that were issued for it last until they expire.
func (s *Service) RemoveKey(id string) { s.change(func() { delete(s.keys, id) }) }

// Grant lets only these principals use a project.
func (s *Service) Grant(project string, principals ...string) {
	s.change(func() { s.grants[project] = principals })
}

// SetPool has a provider of a workload identity pool accept tokens, each with its principal.
func (s *Service) SetPool(audience string, subjects map[string]string) {
	s.change(func() { s.pools[audience] = subjects })
}

// SetCreators lets only these principals impersonate a service account.
func (s *Service) SetCreators(email string, principals ...string) {
	s.change(func() { s.creators[email] = principals })
}

// ExpireTokens ends all tokens that were issued.
func (s *Service) ExpireTokens() { s.change(func() { s.tokens = map[string]token{} }) }

// Hang has the requests for tokens with keys of a service account hang until the returned function is called, which may be repeated.
func (s *Service) Hang(email string) func() {
	held := make(chan struct{})
	s.change(func() { s.held[email] = held })
	return sync.OnceFunc(func() {
		s.change(func() { delete(s.held, email) })
		close(held)
	})
}

// Calls are the requests for tokens, as service and principal.
func (s *Service) Calls() (all []string) {
	s.change(func() { all = slices.Clone(s.calls) })
	return all
}

func (s *Service) change(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
}

// Principal returns the owner of a token; false if it is none, or is not valid for Compute Engine.
func (s *Service) Principal(access string) (string, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	t, ok := s.tokens[access]
	good := slices.ContainsFunc(t.scopes, func(scope string) bool { return strings.HasSuffix(scope, "/compute") || scope == cloudPlatform })
	return t.principal, ok && good && s.clock.Now().Before(t.expires)
}

// Allowed returns whether a principal may use a project.
func (s *Service) Allowed(principal, project string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Contains(s.grants[project], principal)
}

const (
	cloudPlatform = "https://www.googleapis.com/auth/cloud-platform"
	jwtBearer     = "urn:ietf:params:oauth:grant-type:jwt-bearer"
	exchange      = "urn:ietf:params:oauth:grant-type:token-exchange"
	accessType    = "urn:ietf:params:oauth:token-type:access_token"
	// lifetime of tokens, unless a shorter one is requested.
	lifetime = time.Hour
)

// subjectTypes are those of the tokens that are exchanged, as https://cloud.google.com/iam/docs/reference/sts/rest/v1/TopLevel/token has
// them, but for those of SAML and of AWS.
var subjectTypes = []string{"urn:ietf:params:oauth:token-type:jwt", "urn:ietf:params:oauth:token-type:id_token"}

// ServeHTTP answers POST /token, POST /v1/token and POST /v1/projects/-/serviceAccounts/<email>:generateAccessToken.
func (s *Service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	account, found := strings.CutPrefix(r.URL.Path, "/v1/projects/-/serviceAccounts/")
	account, generate := strings.CutSuffix(account, ":generateAccessToken")
	switch {
	case r.Method != http.MethodPost:
		w.WriteHeader(http.StatusMethodNotAllowed)
	case r.URL.Path == "/token":
		s.serveKey(w, r)
	case r.URL.Path == "/v1/token":
		s.serveExchange(w, r)
	case found && generate:
		s.serveImpersonation(w, r, account)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// give issues a token. The lock is held.
func (s *Service) give(service, principal string, scopes []string, lasts time.Duration) string {
	s.count++
	access := fmt.Sprintf("ya29.simulated-%d", s.count)
	s.tokens[access] = token{principal, scopes, s.clock.Now().Add(lasts)}
	s.calls = append(s.calls, service+" "+principal)
	return access
}

func (s *Service) serveKey(w http.ResponseWriter, r *http.Request) {
	email, scopes, err := s.verified(r)
	if err != "" {
		oauthError(w, "invalid_grant", err)
		return
	}
	s.mu.Lock()
	held := s.held[email]
	s.mu.Unlock()
	if held != nil {
		select {
		case <-held:
		case <-r.Context().Done():
			return
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	answer(w, http.StatusOK, map[string]any{
		"access_token": s.give("oauth2", email, scopes, lifetime), "expires_in": int(lifetime.Seconds()) - 1, "token_type": "Bearer",
	})
}

// verified checks an assertion as https://developers.google.com/identity/protocols/oauth2/service-account has it.
func (s *Service) verified(r *http.Request) (email string, scopes []string, refused string) {
	parts := strings.Split(r.FormValue("assertion"), ".")
	if r.FormValue("grant_type") != jwtBearer || len(parts) != 3 {
		return "", nil, "Invalid JWT"
	}
	var header struct{ Alg, Kid string }
	var claims struct {
		Iss, Aud, Scope string
		Iat, Exp        int64
	}
	if !decode(parts[0], &header) || !decode(parts[1], &claims) || header.Alg != "RS256" {
		return "", nil, "Invalid JWT"
	}
	s.mu.Lock()
	known := s.keys[header.Kid]
	s.mu.Unlock()
	signature, err := base64.RawURLEncoding.DecodeString(parts[2])
	sum := sha256.Sum256([]byte(parts[0] + "." + parts[1]))
	switch {
	case known.public == nil || known.email != claims.Iss:
		return "", nil, "Invalid grant: account not found"
	case err != nil || rsa.VerifyPKCS1v15(known.public, crypto.SHA256, sum[:], signature) != nil:
		return "", nil, "Invalid JWT Signature."
	case claims.Aud != "https://oauth2.googleapis.com/token":
		return "", nil, "Invalid JWT: Failed audience check."
	case claims.Exp-claims.Iat > 3600:
		return "", nil, "Invalid JWT: Token must be a short-lived token (60 minutes)"
	}
	return claims.Iss, strings.Fields(claims.Scope), ""
}

func (s *Service) serveExchange(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	subjects, known := s.pools[r.FormValue("audience")]
	principal := subjects[r.FormValue("subject_token")]
	switch {
	case r.FormValue("grant_type") != exchange || !slices.Contains(subjectTypes, r.FormValue("subject_token_type")) ||
		r.FormValue("requested_token_type") != accessType:
		oauthError(w, "invalid_request", "Invalid value for grant_type, subject_token_type or requested_token_type.")
	case !known:
		oauthError(w, "invalid_target", `The target service indicated by the "audience" parameters is invalid.`)
	case principal == "":
		oauthError(w, "invalid_grant", "The subject token is not valid.")
	default:
		answer(w, http.StatusOK, map[string]any{
			"access_token": s.give("sts", principal, strings.Fields(r.FormValue("scope")), lifetime), "expires_in": int(lifetime.Seconds()) - 1,
			"token_type": "Bearer", "issued_token_type": accessType,
		})
	}
}

func (s *Service) serveImpersonation(w http.ResponseWriter, r *http.Request, email string) {
	var body struct {
		Delegates, Scope []string
		Lifetime         string
	}
	lasts, err := lifetime, json.NewDecoder(r.Body).Decode(&body)
	if err == nil && body.Lifetime != "" {
		lasts, err = time.ParseDuration(body.Lifetime)
	}
	// More than an hour takes a policy of the organization; there is none.
	if err != nil || lasts <= 0 || lasts > lifetime || len(body.Scope) == 0 {
		apiError(w, http.StatusBadRequest, "INVALID_ARGUMENT", "Request contains an invalid argument.")
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	by, ok := s.tokens[strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")]
	good := slices.Contains(by.scopes, cloudPlatform) || slices.Contains(by.scopes, "https://www.googleapis.com/auth/iam")
	if !ok || !good || !s.clock.Now().Before(by.expires) {
		apiError(w, http.StatusUnauthorized, "UNAUTHENTICATED", "Request had invalid authentication credentials.")
		return
	}
	principal := by.principal
	for _, next := range append(body.Delegates, email) {
		next = strings.TrimPrefix(next, "projects/-/serviceAccounts/")
		if !slices.Contains(s.creators[next], principal) {
			apiError(w, http.StatusForbidden, "PERMISSION_DENIED",
				"Permission 'iam.serviceAccounts.getAccessToken' denied on resource (or it may not exist).")
			return
		}
		principal = next
	}
	answer(w, http.StatusOK, map[string]any{
		"accessToken": s.give("iamcredentials", email, body.Scope, lasts), "expireTime": s.clock.Now().Add(lasts).UTC().Format(time.RFC3339),
	})
}
