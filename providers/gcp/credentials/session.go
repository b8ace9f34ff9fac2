package credentials

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"cloud.google.com/go/compute/metadata"
	"golang.org/x/oauth2/google"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/tokenfile"
	infrav1 "millwright.dev/providers/gcp/api/v1alpha1"
)

// Sessions keeps the sessions of all GCPIdentities.
type Sessions = identity.Sessions[*infrav1.GCPIdentity, *Session]

// Options of Sessions.
type Options struct {
	// Endpoints are where tokens come from.
	Endpoints Endpoints
	// Transport of the calls.
	Transport http.RoundTripper
	// TokenDirectories are where files with tokens may be.
	TokenDirectories []string
	// Timeout of a request for a token.
	Timeout time.Duration
	// Namespace of the provider, where Secrets are.
	Namespace string
}

// NewSessions returns the sessions of GCPIdentities that identities has, the cache, with the Secrets that secrets has, the API server
// itself.
func NewSessions(identities, secrets client.Reader, clk clock.PassiveClock, o Options) *Sessions {
	var sessions *Sessions
	opener := opener{o, newExchanger(o.Endpoints, o.Transport, o.Timeout), func(name string, s *Session) { sessions.Refused(name, s) }}
	sessions = &Sessions{
		Identities: identities, Secrets: secrets, Namespace: o.Namespace, Kind: "GCPIdentity", Clock: clk,
		New: func() *infrav1.GCPIdentity { return &infrav1.GCPIdentity{} },
		SecretName: func(id *infrav1.GCPIdentity) string {
			if id.Spec.Secret == nil {
				return ""
			}
			return id.Spec.Secret.Name
		},
		Open: opener.open,
	}
	return sessions
}

// Session is the tokens of one version of a GCPIdentity. All methods may be called concurrently.
type Session struct {
	tokens *Tokens
	// principal returns whose they are; empty if that is not known.
	principal func(ctx context.Context) string
	// onRefusal is called when Google Cloud refuses the credentials.
	onRefusal func(*Session)
}

// Token returns a token. Its error has a class, and says little to those who use an identity: the rest is for its condition.
func (s *Session) Token(ctx context.Context) (string, error) {
	token, err := s.tokens.Token(ctx)
	if err == nil {
		return token, nil
	}
	if identity.AsInvalid(err) != nil {
		s.onRefusal(s)
	}
	return "", identity.NotSent(err)
}

// Refused reports that Google Cloud has answered that a token is none, or not any more.
func (s *Session) Refused(token string) {
	s.tokens.Refused(token)
	s.onRefusal(s)
}

// Verify asks for a new token, so that credentials that were withdrawn do not seem good as long as the last one lasts.
func (s *Session) Verify(ctx context.Context) (identity.Holder, error) {
	if err := s.tokens.Renew(ctx); err != nil {
		if identity.AsInvalid(err) != nil {
			s.onRefusal(s)
		}
		return identity.Holder{}, err
	}
	return identity.Holder{Principal: s.principal(ctx)}, nil
}

type opener struct {
	Options
	exchanger exchanger
	onRefusal func(name string, s *Session)
}

// open creates a session. It calls nothing: a token is asked for when it is needed.
func (o opener) open(_ context.Context, id *infrav1.GCPIdentity, secret *corev1.Secret) (*Session, error) {
	source, principal, err := o.source(id, secret)
	if err != nil {
		return nil, err
	}
	if i := id.Spec.Impersonate; i != nil {
		lifetime := fmt.Sprintf("%ds", ptr.Deref(i.LifetimeSeconds, 3600))
		source = o.exchanger.impersonated(source, impersonation{email: i.Address(), delegates: i.DelegateAddresses(), lifetime: lifetime}, scope)
		principal = fixed(i.Address())
	}
	name := id.Name
	return &Session{tokens: New(source, o.Timeout), principal: principal, onRefusal: func(s *Session) { o.onRefusal(name, s) }}, nil
}

// source is where the tokens come from, and whose they are.
func (o opener) source(id *infrav1.GCPIdentity, secret *corev1.Secret) (Source, func(context.Context) string, error) {
	// Tokens for another account's tokens have to be good for more than Compute Engine.
	wanted := scope
	if id.Spec.Impersonate != nil {
		wanted = cloudPlatform
	}
	switch w := id.Spec.WorkloadIdentity; {
	case secret != nil:
		found, err := readSecret(secret)
		if err != nil {
			return nil, nil, err
		}
		if found.impersonate == nil {
			return o.exchanger.key(found.key, wanted), fixed(found.key.email), nil
		}
		first := o.exchanger.key(found.key, cloudPlatform)
		return o.exchanger.impersonated(first, *found.impersonate, wanted), fixed(found.impersonate.email), nil
	case w != nil:
		file := tokenfile.File{Field: "spec.workloadIdentity.tokenFile", Path: w.TokenFile, Directories: o.TokenDirectories}
		if _, err := file.Read(); err != nil {
			return nil, nil, err
		}
		return o.exchanger.federated(w.Provider(), file, wanted), fixed(w.Provider()), nil
	case id.Spec.Ambient != nil:
		return ambient(o.Transport, o.Timeout, wanted), ownPrincipal, nil
	}
	// The process's own credentials are for who asks for them: an identity of a later version may take its own from where this one does not
	// know of.
	return nil, nil, invalid("spec: give exactly one of ambient, secret and workloadIdentity: it is where the credentials come from")
}

func fixed(principal string) func(context.Context) string {
	return func(context.Context) string { return principal }
}

// ownPrincipal is whose the application default credentials are; empty if neither they nor the metadata server say so.
func ownPrincipal(ctx context.Context) string {
	found, err := google.FindDefaultCredentials(ctx)
	if err != nil {
		return ""
	}
	var file struct {
		Email string `json:"client_email"`
		URL   string `json:"service_account_impersonation_url"`
	}
	if len(found.JSON) > 0 {
		_ = json.Unmarshal(found.JSON, &file) // It was read before.
		if email := impersonateURL.FindStringSubmatch(file.URL); email != nil {
			return email[1]
		}
		return file.Email
	}
	email, _ := metadata.EmailWithContext(ctx, "default") // Whose they are is only shown.
	return strings.TrimSpace(email)
}
