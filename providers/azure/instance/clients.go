package instance

import (
	"context"
	"net/http"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
)

// module names the provider in the User-Agent.
const module, moduleVersion = "millwright", "v1.0.0"

// clients are those of subscriptions, with the credentials of the process or of one session.
type clients struct {
	config session.Config
	// session is that of an identity; nil for the process's own credentials.
	session *session.Session

	mu            sync.Mutex
	subscriptions map[string]*subscription
	// principal is the object ID of who calls with the process's own credentials; empty until there was a token.
	principal string
}

// subscription has the clients of one.
type subscription struct {
	id       string
	machines *armcompute.VirtualMachinesClient
	disks    *armcompute.DisksClient
	skus     *armcompute.ResourceSKUsClient
	network  *network
}

func newClients(config session.Config, s *session.Session) *clients {
	return &clients{config: config, session: s, subscriptions: map[string]*subscription{}}
}

// options are those of every client: no call is repeated here, since the kit repeats what is to be repeated, and no resource provider is
// registered, which is a right that is not needed for machines.
func (c *clients) options(subscription string) *arm.ClientOptions {
	return &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Cloud: c.config.Cloud, Retry: policy.RetryOptions{MaxRetries: -1}, Transport: c.config.Transport,
			InsecureAllowCredentialWithHTTP: c.config.InsecureHTTP,
			Telemetry:                       policy.TelemetryOptions{ApplicationID: module},
			PerCallPolicies:                 c.policies(subscription),
		},
		DisableRPRegistration: true,
	}
}

// of returns the clients of a scope's subscription.
func (c *clients) of(scope driver.Scope) (*subscription, string, error) {
	id, group := split(scope)
	c.mu.Lock()
	defer c.mu.Unlock()
	if s := c.subscriptions[id]; s != nil {
		return s, group, nil
	}
	credential := c.credential()
	factory, err := armcompute.NewClientFactory(id, credential, c.options(id))
	if err != nil {
		return nil, "", driver.NewTerminalError("NewClient", "", err)
	}
	client, err := arm.NewClient(module, moduleVersion, credential, c.options(id))
	if err != nil {
		return nil, "", driver.NewTerminalError("NewClient", "", err)
	}
	s := &subscription{
		id: id, machines: factory.NewVirtualMachinesClient(), disks: factory.NewDisksClient(), skus: factory.NewResourceSKUsClient(),
		network: &network{client: client, subscription: id},
	}
	c.subscriptions[id] = s
	return s, group, nil
}

// credential signs the calls.
func (c *clients) credential() azcore.TokenCredential {
	if c.session != nil {
		return c.session
	}
	return &signed{c.config.Credential, c}
}

// policies see the answers of all calls.
func (c *clients) policies(subscription string) []policy.Policy {
	if c.session == nil {
		return []policy.Policy{measured{subscription}}
	}
	return []policy.Policy{measured{subscription}, noticing{c.session}}
}

// noticing notifies a session when Azure refuses its token.
type noticing struct{ session *session.Session }

// Do makes the call.
func (n noticing) Do(request *policy.Request) (*http.Response, error) {
	response, err := request.Next()
	if err == nil && response.StatusCode == http.StatusUnauthorized {
		n.session.Refused()
	}
	return response, err
}

// signed distinguishes errors of the process's own credential from those of calls, and notes whose it is.
type signed struct {
	azcore.TokenCredential
	clients *clients
}

// GetToken returns a token.
func (s *signed) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := s.TokenCredential.GetToken(ctx, options)
	if err != nil {
		return token, &credentialsError{session.Explain(err)}
	}
	_, principal := session.ClaimsOf(token.Token)
	s.clients.mu.Lock()
	defer s.clients.mu.Unlock()
	s.clients.principal = principal
	return token, nil
}

// caller is the object ID of who calls; empty until there was a token.
func (c *clients) caller() string {
	if c.session != nil {
		return c.session.Principal()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.principal
}
