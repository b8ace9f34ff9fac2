package main

import (
	"testing"

	. "github.com/onsi/gomega"
	"github.com/spf13/pflag"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/identity"
	"millwright.dev/providers/driver/manager"
)

// clientManager is a manager of which nothing but the client is used.
type clientManager struct {
	ctrl.Manager
	client client.Client
}

func (m clientManager) GetClient() client.Client { return m.client }

// Without --namespace the guard looks for an identity's users in all namespaces, which a manager of one namespace may not list.
func TestTheGuardKnowsTheFlags(t *testing.T) {
	g := NewWithT(t)
	mgr := clientManager{client: fake.NewClientBuilder().Build()}
	given := func(args ...string) *identity.Guard {
		options := manager.NewOptions(name, driver.Traits{})
		options.Identities = &manager.IdentityOptions{}
		flags := pflag.NewFlagSet(t.Name(), pflag.ContinueOnError)
		options.AddFlags(flags)
		g.Expect(flags.Parse(args)).To(Succeed())
		return newGuard(mgr, options)
	}
	guard := given("--namespace=shoot", "--require-identity")
	g.Expect(guard.Namespace).To(Equal("shoot"))
	g.Expect(guard.Required).To(BeTrue())
	g.Expect(guard.Reader).To(BeIdenticalTo(mgr.client))
	g.Expect(guard.Kind).To(Equal(identityKind))
	g.Expect(guard.Unused).To(BeFalse())
	g.Expect(given("--without-identities").Unused).To(BeTrue())
	guard = given()
	g.Expect(guard.Namespace).To(BeEmpty(), "all namespaces")
	g.Expect(guard.Required).To(BeFalse())
}
