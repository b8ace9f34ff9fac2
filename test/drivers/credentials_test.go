package drivers

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/aws/aws-sdk-go-v2/aws"

	"millwright.dev/providers/driver"
)

// credentials are those that a provider has, of which a cloud accepts the latest.
type credentials struct {
	prefix string
	accept func(string)

	mu sync.Mutex
	n  int
}

func (c *credentials) current() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.key()
}

func (c *credentials) key() string { return fmt.Sprintf("%s%08d", c.prefix, c.n) }

// rotate gives the provider others; earlier ones are refused.
func (c *credentials) rotate() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.n++
	c.accept(c.key())
}

// expire has all of them refused, and restore accepts those that the provider has.
func (c *credentials) expire() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accept("none")
}

func (c *credentials) restore() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accept(c.key())
}

// Retrieve is AWS's form of them.
func (c *credentials) Retrieve(context.Context) (aws.Credentials, error) {
	return aws.Credentials{AccessKeyID: c.current(), SecretAccessKey: "secret"}, nil
}

// GetToken is Azure's.
func (c *credentials) GetToken(context.Context, policy.TokenRequestOptions) (azcore.AccessToken, error) {
	return azcore.AccessToken{Token: c.current(), ExpiresOn: time.Now().Add(time.Minute)}, nil
}

// Token and Refused are Google's, and scoped is the example's.
func (c *credentials) Token(context.Context) (string, error) { return c.current(), nil }

// Refused is called with a token that was refused; each call requests one anyway.
func (c *credentials) Refused(string) {}

func (c *credentials) scoped(context.Context, driver.Scope) (string, error) { return c.current(), nil }
