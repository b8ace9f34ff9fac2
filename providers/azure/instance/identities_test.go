package instance_test

import (
	"context"
	"fmt"
	"net/http/httptest"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"github.com/pkg/errors"
	"k8s.io/utils/clock"

	infrav1 "millwright.dev/providers/azure/api/v1alpha1"
	"millwright.dev/providers/azure/instance"
	"millwright.dev/providers/azure/session"
	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/azure/entra"
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

// TestPowerStatesAreListedOnceForASubscription, not for each of its resource groups: Azure grants 30 such lists a minute.
func TestPowerStatesAreListedOnceForASubscription(t *testing.T) {
	catalog := arm.DefaultCatalog()
	for i := range 40 {
		catalog.Groups = append(catalog.Groups, arm.Group{Subscription: arm.DefaultSubscription, Name: fmt.Sprintf("group-%d", i)})
	}
	f := newFixture(t, arm.Options{Catalog: catalog})
	h := f.running(launch("m1", func(s *infrav1.AzureMachineSpec) { s.Spot = &infrav1.Spot{EvictionPolicy: "Deallocate"} }))
	f.Expect(f.cloud.Evict(h.ProviderID[len("azure://"):])).To(Succeed())
	f.clock.Step(10 * time.Second)
	for range 2 {
		for i := range 40 {
			found, err := f.ListStatus(f.ctx, driver.Scope{Location: arm.DefaultSubscription + fmt.Sprintf("/group-%d", i)})
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(found).To(BeEmpty())
		}
		found, err := f.ListStatus(f.ctx, scope)
		f.Expect(err).NotTo(HaveOccurred())
		f.Expect(found).To(HaveKey(h.ProviderID))
	}
	f.Expect(f.calls()["VirtualMachines_ListAll"]).To(Equal(1))
	f.clock.Step(20 * time.Second)
	_, err := f.ListStatus(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(f.calls()["VirtualMachines_ListAll"]).To(Equal(2))
}

// TestTheProcessOnASimulator: by flags and environment alone the provider's process gets along with a simulator on loopback, as in the
// demo.
func TestTheProcessOnASimulator(t *testing.T) {
	g := NewWithT(t)
	authority := entra.New(clock.RealClock{})
	app := entra.Application{Tenant: "t", ClientID: "c", ObjectID: "the-object", Subscriptions: []string{arm.DefaultSubscription}}
	authority.SetManagedIdentity(app)
	tenant := arm.New(arm.Options{Authorize: authority.Authorize})
	t.Cleanup(tenant.Close)
	front, login := httptest.NewServer(tenant), httptest.NewServer(authority)
	t.Cleanup(front.Close)
	t.Cleanup(login.Close)
	for _, name := range []string{"AZURE_TENANT_ID", "AZURE_CLIENT_ID", "AZURE_CLIENT_SECRET", "AZURE_FEDERATED_TOKEN_FILE"} {
		t.Setenv(name, "")
	}
	t.Setenv("IDENTITY_ENDPOINT", login.URL+"/msi/token")
	t.Setenv("IDENTITY_HEADER", "x")
	options := &session.Options{Environment: "AzureCloud", ResourceManager: front.URL}
	g.Expect(options.Validate()).To(Succeed())
	config, err := options.Config()
	g.Expect(err).NotTo(HaveOccurred())
	azure := instance.New(config, clock.RealClock{})
	_, err = azure.List(t.Context(), scope)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(azure.LimitScope(scope)).To(HaveSuffix("/principal the-object"))
	g.Expect(authority.Calls()).To(ConsistOf(HaveField("By", "managedIdentity")))
}
