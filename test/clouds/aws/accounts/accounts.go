// Package accounts puts several simulated AWS accounts behind one address, with STS in front of them: the signer of a request decides which
// account it reaches. Where it and the documentation of AWS disagree, it is wrong.
package accounts

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"sync"
	"time"

	"k8s.io/utils/clock"

	"millwright.dev/test/clouds/aws/simapi"
)

// apiVersion is the one version of STS's API.
const apiVersion = "2011-06-15"

// Role is a role that may be assumed.
type Role struct {
	// ARN has the account.
	ARN string
	// Principals are the ARNs, or the account IDs, of those whom the role trusts.
	Principals []string
	// ExternalID that callers have to give; none when empty.
	ExternalID string
	// Tokens are those that AssumeRoleWithWebIdentity takes for the role.
	Tokens []string
}

// caller is the owner of an access key.
type caller struct {
	account, arn string
	// token is the session token that has to come with it; empty for users.
	token string
	// expires is when the session ends; zero for users.
	expires time.Time
	revoked bool
}

// Front is an http.Handler for STS, and for EC2 and Systems Manager of several accounts.
type Front struct {
	clock clock.PassiveClock

	mu       sync.Mutex
	accounts map[string]http.Handler
	callers  map[string]*caller
	roles    []Role
	calls    []simapi.Call
	hang     chan struct{}
	issued   int
}

// New returns a Front without accounts.
func New(clk clock.PassiveClock) *Front {
	return &Front{clock: clk, accounts: map[string]http.Handler{}, callers: map[string]*caller{}}
}

// AddAccount adds an account: what answers its calls of EC2 and Systems Manager, normally an ec2.Server with that AccountID.
func (f *Front) AddAccount(id string, services http.Handler) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.accounts[id] = services
}

// AddUser adds a user of an account with an access key. Secret keys are not checked.
func (f *Front) AddUser(account, name, accessKeyID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.callers[accessKeyID] = &caller{account: account, arn: fmt.Sprintf("arn:aws:iam::%s:user/%s", account, name)}
}

// RemoveKey removes an access key.
func (f *Front) RemoveKey(accessKeyID string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.callers, accessKeyID)
}

// SetRoles replaces the roles of all accounts.
func (f *Front) SetRoles(roles ...Role) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.roles = roles
}

// ExpireSessions ends all sessions that STS has issued so far.
func (f *Front) ExpireSessions() {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, c := range f.callers {
		c.revoked = c.revoked || c.token != ""
	}
}

// HangSTS has calls of STS wait until release is called, or the caller has gone.
func (f *Front) HangSTS() (release func()) {
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

// Calls are those of STS so far. Tokens of web identities are not in it.
func (f *Front) Calls() []simapi.Call {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.Clone(f.calls)
}

// credential is the part of the header Authorization that names the signer and the service.
var credential = regexp.MustCompile(`Credential=([^/, ]+)/[0-9]{8}/[a-z0-9-]+/([a-z0-9-]+)/aws4_request`)

// ServeHTTP answers STS, and hands calls of other services to the account of the caller.
func (f *Front) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, 1<<20))
	if err != nil {
		return
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	signed := credential.FindStringSubmatch(r.Header.Get("Authorization"))
	key, service := "", "sts"
	if signed != nil {
		key, service = signed[1], signed[2]
	}
	if service == "sts" {
		form, _ := url.ParseQuery(string(body))
		f.serveSTS(w, r, key, form)
		return
	}
	c, refused := f.authenticate(key, r.Header.Get("X-Amz-Security-Token"))
	if refused != nil {
		refused.write(w, service)
		return
	}
	f.mu.Lock()
	services := f.accounts[c.account]
	f.mu.Unlock()
	services.ServeHTTP(w, r)
}

// authenticate returns the owner of an access key.
func (f *Front) authenticate(key, token string) (*caller, *refusal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	c := f.callers[key]
	switch {
	case c == nil || c.token != token:
		return nil, &refusal{http.StatusForbidden, "InvalidClientTokenId", "The security token included in the request is invalid."}
	case c.revoked || !c.expires.IsZero() && !f.clock.Now().Before(c.expires):
		return nil, &refusal{http.StatusForbidden, "ExpiredToken", "The security token included in the request is expired"}
	}
	return c, nil
}
