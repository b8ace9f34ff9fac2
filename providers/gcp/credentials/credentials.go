// Package credentials gets the access tokens with which the provider calls Google Cloud: those of the process (Own), and those of
// GCPIdentities (NewSessions).
package credentials

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"millwright.dev/providers/driver/calls"
)

const (
	// scope is what the tokens are good for; the roles of the account decide about the rest.
	scope = "https://www.googleapis.com/auth/compute"
	// refreshTimeout bounds one request for a token of the process, for all that wait for it.
	refreshTimeout = 20 * time.Second
	// dropEvery is how often, at most, a token is given up because Google Cloud has refused it.
	dropEvery = 10 * time.Second
)

// Source asks Google Cloud for a new token. Its error is an identity.Invalid where a person has to change something, and shows nothing
// secret.
type Source func(ctx context.Context) (*oauth2.Token, error)

// Own are the application default credentials: https://cloud.google.com/docs/authentication/application-default-credentials. They
// are looked for when a token is needed, so that a rotated key is used from the next one on.
func Own(transport http.RoundTripper) *Tokens {
	return New(ambient(transport, refreshTimeout, scope), refreshTimeout)
}

// ambient asks with the application default credentials.
func ambient(transport http.RoundTripper, timeout time.Duration, scope string) Source {
	client := &http.Client{Transport: transport, Timeout: timeout}
	return func(ctx context.Context) (*oauth2.Token, error) {
		found, err := google.FindDefaultCredentials(context.WithValue(ctx, oauth2.HTTPClient, client), scope)
		if err != nil {
			// The error names files and what is wrong with them, and holds nothing of their content.
			return nil, invalid("the application default credentials cannot be read: %v", err)
		}
		token, err := found.TokenSource.Token()
		return token, explain("an access token", err)
	}
}

// Tokens gives out a token until it is about to expire. A caller waits no longer than for its own context, and one request for a
// new token is sent for all.
type Tokens struct {
	source  Source
	timeout time.Duration

	mu    sync.Mutex
	token *oauth2.Token
	// refresh is the request under way; nil if there is none.
	refresh *refresh
	// dropped is when a token was given up.
	dropped time.Time
}

// refresh is one request for a token.
type refresh struct {
	done  chan struct{}
	token *oauth2.Token
	err   error
}

// New gives out the tokens of a source, each request to which has a timeout.
func New(source Source, timeout time.Duration) *Tokens {
	return &Tokens{source: source, timeout: timeout}
}

// Token returns a token.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	if t.token.Valid() {
		defer t.mu.Unlock()
		return t.token.AccessToken, nil
	}
	r := t.request()
	t.mu.Unlock()
	return r.wait(ctx)
}

// Renew asks for a new token, whatever is there.
func (t *Tokens) Renew(ctx context.Context) error {
	t.mu.Lock()
	r := t.request()
	t.mu.Unlock()
	_, err := r.wait(ctx)
	return err
}

// Refused reports that Google Cloud has answered that a token is none, or not any more: it is not used again. Refusals cost one request in
// ten seconds at most.
func (t *Tokens) Refused(token string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.token != nil && t.token.AccessToken == token && time.Since(t.dropped) >= dropEvery {
		t.token, t.dropped = nil, time.Now()
	}
}

// request returns the request under way, or begins one. The lock is held.
func (t *Tokens) request() *refresh {
	if t.refresh == nil {
		t.refresh = &refresh{done: make(chan struct{})}
		go t.ask(t.refresh)
	}
	return t.refresh
}

func (r *refresh) wait(ctx context.Context) (string, error) {
	select {
	case <-r.done:
	case <-ctx.Done():
		return "", errors.New("Google Cloud has not given out an access token within the time limit")
	}
	if r.err != nil {
		return "", r.err
	}
	return r.token.AccessToken, nil
}

// ask asks for a token and wakes who waits. A panic in a source ends no more than the request. A token that is there stays if there is no
// other: it may still be good.
func (t *Tokens) ask(r *refresh) {
	ctx, cancel := context.WithTimeout(context.Background(), t.timeout)
	defer cancel()
	defer func() {
		if v := recover(); v != nil {
			r.token, r.err = nil, errors.Errorf("asking for an access token: %v", v)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.refresh = nil
		if r.err == nil {
			t.token = r.token
		}
		close(r.done)
	}()
	began := time.Now()
	r.token, r.err = t.source(ctx)
	calls.Record("gcp", "global", "Token", time.Since(began), classed(r.err))
	if r.err == nil && (r.token == nil || r.token.AccessToken == "") {
		r.err = errors.New("the answer of Google Cloud has no access token")
	}
}
