//nolint:staticcheck // for clients of v1beta1, as long as upstream converts for them
package machine_test

import (
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/version"
	"millwright.dev/test/coretest"
)

// TestTerminalFailure: what a provider of the older contract cannot recover from stands where clients of v1beta1 look,
// and goes when the provider takes it back. Upstream's core keeps it for ever.
func TestTerminalFailure(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta1)
	f.createOwned()
	core.SetStatus(t, f.infra, map[string]any{"failureReason": "InsufficientResources", "failureMessage": "no such machine type"})
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/InsufficientResources"))
		g.Expect(m.Status.Deprecated.V1Beta1.FailureReason).To(HaveValue(BeEquivalentTo("InsufficientResources")))
		g.Expect(m.Status.Deprecated.V1Beta1.FailureMessage).To(HaveValue(Equal("no such machine type")))
		g.Expect(m.Status.Phase).To(Equal("Pending"), "controllers set Failed no more")
	})
	f.Expect(f.eventuallyRecorded("ProviderFailed").Note).To(Equal("no such machine type"))
	core.SetStatus(t, f.infra, map[string]any{"failureReason": nil, "failureMessage": nil})
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(m.Status.Deprecated.V1Beta1.FailureReason).To(BeNil())
		g.Expect(m.Status.Deprecated.V1Beta1.FailureMessage).To(BeNil())
	})
}

// TestVanishedInfrastructure: an infrastructure object that goes after provisioning is reported by condition, failure and
// event; the Machine is not silently recreated, and recovers when the object comes back.
func TestVanishedInfrastructure(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.run()
	f.refresh(f.infra)
	f.Expect(core.Client.Delete(t.Context(), f.infra)).To(Succeed())
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "InfrastructureReady")).To(Equal("False/ObjectDeleted"))
		g.Expect(condition(m, "Ready")).To(Equal("False/NotReady"))
		g.Expect(m.Status.Deprecated.V1Beta1.FailureReason).To(HaveValue(BeEquivalentTo("InvalidConfiguration")))
		g.Expect(m.Status.Initialization.InfrastructureProvisioned).To(HaveValue(BeTrue()), "what has been seen stays")
		g.Expect(m.Spec.ProviderID).To(Equal(f.providerID()))
	})
	f.eventuallyRecorded("ObjectDeleted")
	f.awaitsNothing()

	f.infra = coretest.Object(coretest.Kind(coretest.Machine, f.contract), f.namespace, f.machine.Name)
	core.Create(t, f.infra)
	f.provision()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		g.Expect(condition(m, "Ready")).To(Equal("True/Ready"))
		g.Expect(m.Status.Deprecated.V1Beta1.FailureReason).To(BeNil())
	})
}

// TestConditionsOfTheOlderForm: clients of v1beta1 find the conditions that they know, and these cost no write.
func TestConditionsOfTheOlderForm(t *testing.T) {
	t.Parallel()
	f := newFixture(t, version.V1Beta2)
	f.eventuallyConnected()
	f.run()
	f.eventually(func(g Gomega, m *clusterv1.Machine) {
		var have []string
		for _, condition := range m.Status.Deprecated.V1Beta1.Conditions {
			have = append(have, string(condition.Type)+"="+string(condition.Status))
		}
		g.Expect(have).To(Equal([]string{"Ready=True", "BootstrapReady=True", "InfrastructureReady=True", "NodeHealthy=True"}))
	})
	statuses := 0
	for _, request := range core.Requests.Writes("/" + f.machine.Name + "/status") {
		if kindOf(request.Path) == "machines/status" {
			statuses++
		}
	}
	f.Expect(statuses).To(BeNumerically("<=", 3), "no more than without them")
}
