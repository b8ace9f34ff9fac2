package instance

import (
	"context"
	"sync"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/arm"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/resourcemanager/compute/armcompute/v8"

	"millwright.dev/providers/driver"
)

// Config is how Azure is called.
type Config struct {
	// Credential signs the calls.
	Credential azcore.TokenCredential
	// Cloud has the address of Azure Resource Manager.
	Cloud cloud.Configuration
	// Transport makes the calls; the SDK's own when nil.
	Transport policy.Transporter
	// InsecureHTTP lets tokens go over connections without TLS: for a simulator on loopback alone.
	InsecureHTTP bool
}

// module names the provider in the User-Agent.
const module, moduleVersion = "millwright", "v1.0.0"

// clients are those of subscriptions.
type clients struct {
	config Config

	mu            sync.Mutex
	subscriptions map[string]*subscription
}

// subscription has the clients of one.
type subscription struct {
	id       string
	machines *armcompute.VirtualMachinesClient
	disks    *armcompute.DisksClient
	skus     *armcompute.ResourceSKUsClient
	network  *network
}

func newClients(config Config) *clients {
	return &clients{config: config, subscriptions: map[string]*subscription{}}
}

// options are those of every client: no call is repeated here, since the kit repeats what is to be repeated, and no resource provider is
// registered, which is a right that nobody needs for machines.
func (c *clients) options(subscription string) *arm.ClientOptions {
	return &arm.ClientOptions{
		ClientOptions: policy.ClientOptions{
			Cloud: c.config.Cloud, Retry: policy.RetryOptions{MaxRetries: -1}, Transport: c.config.Transport,
			PerCallPolicies:                 []policy.Policy{measured{subscription}},
			InsecureAllowCredentialWithHTTP: c.config.InsecureHTTP,
			Telemetry:                       policy.TelemetryOptions{ApplicationID: module},
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
	credential := &signed{c.config.Credential}
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

// signed tells errors of the credential from those of calls.
type signed struct{ azcore.TokenCredential }

// GetToken returns a token.
func (s *signed) GetToken(ctx context.Context, options policy.TokenRequestOptions) (azcore.AccessToken, error) {
	token, err := s.TokenCredential.GetToken(ctx, options)
	if err != nil {
		return token, &credentialsError{err}
	}
	return token, nil
}
