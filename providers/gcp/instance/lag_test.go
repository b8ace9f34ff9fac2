package instance_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/gcp/compute"
)

// While a list does not show a new instance yet, it does not count as gone, also when it is to end.
func TestObserve_ListLags_NewInstanceIsNotGone(t *testing.T) {
	f := newFixture(t, compute.Options{})
	f.cloud.SetDelays(compute.Delays{Listing: 10 * time.Second})
	h := f.accepted(launch(zoneA, "one", 1))
	f.clock.Step(time.Second)
	i := f.observe(h)
	f.Expect(i.Err).NotTo(HaveOccurred())
	f.Expect(i.Value.State).To(Equal(driverv1.InstanceRunning))
	h.ProviderID, h.Ending = i.Value.ProviderID, true
	f.Expect(f.observe(h)).To(HaveField("Value.State", driverv1.InstanceRunning))
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.settle()
	f.class(f.observe(h).Err, driver.ClassNotFound)
}
