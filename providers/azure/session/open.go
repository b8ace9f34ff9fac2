package session

import (
	"context"
	"net/http"
	"strings"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/calls"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/identity/tokenfile"
)

// Sessions keeps the sessions of all AzureIdentities.
type Sessions = identity.Sessions[*infrav1.AzureIdentity, *Session]

// Sources are where Sessions has credentials from.
type Sources struct {
	// Config has the cloud, and the credentials of the process.
	Config Config
	// TokenDirectories are where files with tokens may be.
	TokenDirectories []string
	// Timeout of a request for a token.
	Timeout time.Duration
	// Namespace of the provider, where Secrets are.
	Namespace string
}

// NewSessions returns the sessions of AzureIdentities that identities has, the cache, with the Secrets that secrets has, the API server
// itself.
func NewSessions(identities, secrets client.Reader, clk clock.PassiveClock, o Sources) *Sessions {
	var sessions *Sessions
	opener := opener{Sources: o, onRefusal: func(name string, s *Session) { sessions.Refused(name, s) }}
	sessions = &Sessions{
		Identities: identities, Secrets: secrets, Namespace: o.Namespace, Kind: "AzureIdentity", Clock: clk,
		New: func() *infrav1.AzureIdentity { return &infrav1.AzureIdentity{} },
		SecretName: func(id *infrav1.AzureIdentity) string {
			if id.Spec.ServicePrincipal == nil {
				return ""
			}
			return id.Spec.ServicePrincipal.SecretName
		},
		Open: opener.open,
	}
	return sessions
}

type opener struct {
	Sources
	onRefusal func(name string, s *Session)
}

// open creates a session. If the tenant of the identity is known, it is asked for first whether the credentials are of the same: in another
// tenant no machine would be found.
func (o opener) open(ctx context.Context, id *infrav1.AzureIdentity, secret *corev1.Secret) (*Session, error) {
	credential, err := o.credential(id, secret)
	if err != nil {
		return nil, err
	}
	name := id.Name
	s := &Session{
		credential: credential, scope: strings.TrimSuffix(o.Config.Cloud.Services[cloud.ResourceManager].Audience, "/") + "/.default",
		timeout: o.Timeout, onRefusal: func(s *Session) { o.onRefusal(name, s) },
	}
	if err := identity.VerifyAccount(ctx, id.Status.Account, s.Verify, changedAccount); err != nil {
		return nil, err
	}
	return s, nil
}

// client has the addresses of the provider's cloud, which no identity can change. The authority is one of three that are known, so it is
// not asked whether it is one. Nothing is repeated: the caller does that.
func (o opener) client() policy.ClientOptions {
	return policy.ClientOptions{
		Cloud: o.Config.Cloud, Transport: o.Config.Transport, Retry: policy.RetryOptions{MaxRetries: -1},
		PerCallPolicies: []policy.Policy{measured{}},
	}
}

// measured counts and times the calls for tokens. Their location is the host, which no identity can choose.
type measured struct{}

// Do makes the call.
func (measured) Do(request *policy.Request) (*http.Response, error) {
	began := time.Now()
	response, err := request.Next()
	failure := err
	switch {
	case err != nil:
		failure = driver.NewUnknownError("Token", "", err)
	case response.StatusCode >= http.StatusInternalServerError:
		failure = driver.NewUnknownError("Token", "", nil)
	case response.StatusCode >= http.StatusBadRequest:
		failure = driver.NewAuthError("Token", "", nil)
	}
	calls.Record("azure", request.Raw().URL.Host, "Token", time.Since(began), failure)
	return response, err
}

// credential is made of where the credentials come from.
func (o opener) credential(id *infrav1.AzureIdentity, secret *corev1.Secret) (azcore.TokenCredential, error) {
	switch spec := &id.Spec; {
	case spec.ServicePrincipal != nil && secret != nil:
		return o.fromSecret(spec.ServicePrincipal, secret)
	case spec.WorkloadIdentity != nil:
		return o.exchanged(spec.WorkloadIdentity)
	case spec.ManagedIdentity != nil:
		options := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: o.client()}
		if spec.ManagedIdentity.ClientID != "" {
			options.ID = azidentity.ClientID(strings.ToLower(spec.ManagedIdentity.ClientID))
		}
		c, err := azidentity.NewManagedIdentityCredential(options)
		return unlessInvalid(c, err, "spec.managedIdentity")
	case spec.Ambient != nil:
		return o.Config.Credential, nil
	}
	// The process's own credentials are for who asks for them: an identity of a later version may take its own from where this one does
	// not know of.
	return nil, invalid("spec: give exactly one of ambient, servicePrincipal, workloadIdentity and managedIdentity: it is where the credentials come from")
}

// exchanged reads the token again for each exchange, so that one that was rotated is used.
func (o opener) exchanged(w *infrav1.WorkloadIdentity) (azcore.TokenCredential, error) {
	file := tokenfile.File{Field: "spec.workloadIdentity.tokenFile", Path: w.TokenFile, Directories: o.TokenDirectories}
	if _, err := file.Read(); err != nil {
		return nil, err
	}
	read := func(context.Context) (string, error) {
		token, err := file.Read()
		return string(token), err
	}
	c, err := azidentity.NewClientAssertionCredential(strings.ToLower(w.TenantID), strings.ToLower(w.ClientID), read,
		&azidentity.ClientAssertionCredentialOptions{ClientOptions: o.client(), DisableInstanceDiscovery: true})
	return unlessInvalid(c, err, "spec.workloadIdentity")
}

// unlessInvalid has the SDK's refusal to make credentials count as one of the field. Its words may quote what it was given.
func unlessInvalid[C azcore.TokenCredential](c C, err error, field string) (azcore.TokenCredential, error) {
	if err != nil {
		return nil, invalid("%s has no credentials that can be used: check that they are whole and not encoded twice", field)
	}
	return c, nil
}
