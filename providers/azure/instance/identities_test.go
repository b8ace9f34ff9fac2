package instance_test

import (
	"context"
	"testing"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"

	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/azure/arm"
)

// none is what there is of identities that cannot be used.
type none struct{}

func (none) Get(context.Context, string) (*session.Session, error) {
	return nil, driver.NewAuthError("", "", errors.New("the credentials cannot be used"))
}

func (none) Latest(string) (*session.Session, bool) { return nil, false }

// TestLimitsAreOfASubscriptionAndAPrincipal: Azure Resource Manager counts by both.
func TestLimitsAreOfASubscriptionAndAPrincipal(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.Expect(f.LimitScope(scope)).To(Equal(arm.DefaultSubscription), "until it is known who calls")
	f.tokens.token = jwt(`{"tid":"t","oid":"the-object"}`)
	_, err := f.List(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.LimitScope(scope)).To(Equal(arm.DefaultSubscription + "/principal the-object"))
	other := driver.Scope{Location: arm.DefaultSubscription + "/another"}
	f.Expect(f.LimitScope(other)).To(Equal(f.LimitScope(scope)), "resource groups share the limits")
	tenant := driver.Scope{Identity: "a", Location: scope.Location}
	f.WithIdentities(none{})
	f.Expect(f.LimitScope(tenant)).To(Equal(arm.DefaultSubscription + "/identity a"))
}

// TestWithoutCredentialsOfTheIdentityNothingIsCalled, and never with those of the process.
func TestWithoutCredentialsOfTheIdentityNothingIsCalled(t *testing.T) {
	f := newFixture(t, arm.Options{})
	tenant := driver.Scope{Identity: "a", Location: scope.Location}
	_, err := f.List(f.ctx, tenant)
	f.Expect(driver.IsAuth(err)).To(BeTrue(), "this provider has no identities")
	f.WithIdentities(none{})
	_, err = f.List(f.ctx, tenant)
	f.Expect(driver.IsAuth(err)).To(BeTrue())
	f.Expect(f.cloud.Calls()).To(BeEmpty())
}
