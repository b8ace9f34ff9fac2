// Package credentials gets the access tokens with which the provider calls Google Cloud: those of the application default credentials,
// which are a key of a service account, an external account (workload identity federation), an impersonated one, or the service
// account that the process runs as.
package credentials

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/pkg/errors"
	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"
)

// scope is what the tokens are good for; the roles of the account decide about the rest.
const scope = "https://www.googleapis.com/auth/compute"

// refreshTimeout bounds one request for a token, for all that wait for it.
const refreshTimeout = 20 * time.Second

// Default are the application default credentials: https://cloud.google.com/docs/authentication/application-default-credentials. They
// are looked for when a token is needed, so that a rotated key is used from the next one on.
func Default(transport http.RoundTripper) *Tokens {
	client := &http.Client{Transport: transport, Timeout: refreshTimeout}
	return New(func() (oauth2.TokenSource, error) {
		found, err := google.FindDefaultCredentials(context.WithValue(context.Background(), oauth2.HTTPClient, client), scope)
		if err != nil {
			// The error names files and what is wrong with them, and holds nothing of their content.
			return nil, errors.Wrap(err, "the application default credentials cannot be read")
		}
		return found.TokenSource, nil
	})
}

// Tokens gives out a token until it is about to expire. Whoever asks waits no longer than for its own context, and one request for a
// new token is made for all.
type Tokens struct {
	open func() (oauth2.TokenSource, error)

	mu    sync.Mutex
	token *oauth2.Token
	// refresh is the request under way; nil if there is none.
	refresh *refresh
}

// refresh is one request for a token.
type refresh struct {
	done  chan struct{}
	token *oauth2.Token
	err   error
}

// New gives out the tokens of the source that open returns, which is called for each new one.
func New(open func() (oauth2.TokenSource, error)) *Tokens { return &Tokens{open: open} }

// Token returns a token.
func (t *Tokens) Token(ctx context.Context) (string, error) {
	t.mu.Lock()
	if t.token.Valid() {
		defer t.mu.Unlock()
		return t.token.AccessToken, nil
	}
	if t.refresh == nil {
		t.refresh = &refresh{done: make(chan struct{})}
		go t.request(t.refresh)
	}
	r := t.refresh
	t.mu.Unlock()
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

// request asks for a token and wakes who waits. A panic in a source ends no more than the request.
func (t *Tokens) request(r *refresh) {
	defer func() {
		if v := recover(); v != nil {
			r.err = errors.Errorf("asking for an access token: %v", v)
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.token, t.refresh = r.token, nil
		close(r.done)
	}()
	source, err := t.open()
	if err != nil {
		r.err = err
		return
	}
	if r.token, err = source.Token(); err != nil {
		r.token, r.err = nil, explain(err)
	}
}

// explain leaves out the body of the answer, which is the server's and may hold anything.
func explain(err error) error {
	var refused *oauth2.RetrieveError
	if !errors.As(err, &refused) {
		return errors.New("no access token could be had from Google Cloud: check the network and the credentials")
	}
	status := ""
	if refused.Response != nil {
		status = refused.Response.Status
	}
	return errors.Errorf("Google Cloud has refused an access token: %s %s %s", status, refused.ErrorCode, refused.ErrorDescription)
}
