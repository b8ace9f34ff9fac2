package instance_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver/calls/callstest"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// TestCallsAreCounted by operation and result, those of the SDK's clients and those of the network alike.
func TestCallsAreCounted(t *testing.T) {
	f := newFixture(t, arm.Options{})
	before, err := callstest.Counted("azure", arm.DefaultSubscription)
	f.Expect(err).NotTo(HaveOccurred())
	f.fault(
		simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", Count: 1, Error: &simulator.APIError{Code: "AllocationFailed", Status: 409}},
	)
	_, _ = f.Create(f.ctx, launch("counted"))
	f.deleted(f.running(launch("counted")))
	_, err = f.ListLeftovers(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	after, err := callstest.Counted("azure", arm.DefaultSubscription)
	f.Expect(err).NotTo(HaveOccurred())
	for _, counted := range []string{
		"VirtualMachines_CreateOrUpdate Capacity", "VirtualMachines_CreateOrUpdate ok", "VirtualMachines_Delete ok", "NetworkInterfaces_List ok",
		"Disks_ListByResourceGroup ok",
	} {
		f.Expect(after[counted]).To(BeNumerically(">", before[counted]), "%s among %v", counted, after)
	}
}
