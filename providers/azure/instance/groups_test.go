package instance_test

import (
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// TestAResourceGroupThatDoesNotExist has nothing in it, and takes no launch until it is there.
func TestAResourceGroupThatDoesNotExist(t *testing.T) {
	f := newFixture(t, arm.Options{})
	h := f.running(launch("m1"))
	f.cloud.RemoveGroup(arm.DefaultSubscription, arm.DefaultGroup)
	_, err := f.Create(f.ctx, launch("m2"))
	f.class(err, driver.ClassUnresolved)
	_, err = f.Create(f.ctx, launch("m3", static("10.1.0.99")))
	f.class(err, driver.ClassUnresolved)
	f.class(f.observe(h).Err, driver.ClassNotFound)
	for _, answer := range f.Observe(f.ctx, scope, []driver.Handle{h, handle(launch("m2")), handle(launch("m3")), handle(launch("m4"))}) {
		f.class(answer.Err, driver.ClassNotFound)
	}
	f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassNotFound)
	first, second := f.cleaned(h)
	f.Expect(append(first, second...)).To(BeEmpty())
	f.Expect(f.list()).To(BeEmpty())
	f.Expect(f.ListLeftovers(f.ctx, scope)).To(BeEmpty())
}

// TestAResourceGroupThatMayNotBeSeen says nothing about what is in it.
func TestAResourceGroupThatMayNotBeSeen(t *testing.T) {
	for code, status := range map[string]int{
		"AuthorizationFailed": http.StatusForbidden, "SubscriptionNotFound": http.StatusNotFound, "ResourceGroupNotFound": http.StatusForbidden,
	} {
		f := newFixture(t, arm.Options{})
		h := f.running(launch("m1"))
		f.fault(simulator.Fault{Action: "*", Error: &simulator.APIError{Code: code, Status: status}})
		_, listErr := f.List(f.ctx, scope)
		_, leftErr := f.ListLeftovers(f.ctx, scope)
		for _, err := range []error{
			f.observe(h).Err, f.Delete(f.ctx, scope, []driver.Handle{h})[0], f.Cleanup(f.ctx, scope, []driver.Handle{h})[0].Err, listErr, leftErr,
		} {
			f.Expect(err).To(HaveOccurred())
			f.Expect(driver.IsNotFound(err)).To(BeFalse())
		}
	}
}

// TestAListThatLacksAMachine is no proof that it is gone, as long as it is not to end: a Machine fails permanently by that.
func TestAListThatLacksAMachine(t *testing.T) {
	f := newFixture(t, arm.Options{})
	var handles []driver.Handle
	for _, name := range []string{"m1", "m2", "m3", "m4"} {
		handles = append(handles, f.running(launch(name)))
	}
	f.clock.Step(time.Hour) // Lists have them by now.
	f.Expect(f.cloud.Vanish("/subscriptions/" + arm.DefaultSubscription + "/resourceGroups/" + arm.DefaultGroup +
		"/providers/Microsoft.Compute/virtualMachines/m1")).
		To(Succeed())
	f.Expect(f.cloud.Vanish("/subscriptions/" + arm.DefaultSubscription + "/resourceGroups/" + arm.DefaultGroup +
		"/providers/Microsoft.Compute/virtualMachines/m2")).
		To(Succeed())
	handles[1].Ending = true
	before := f.calls()["VirtualMachines_Get"]
	answers := f.Observe(f.ctx, scope, handles)
	f.class(answers[0].Err, driver.ClassNotFound)
	f.class(answers[1].Err, driver.ClassNotFound)
	f.Expect(answers[2:]).To(HaveEach(HaveField("Err", BeNil())))
	f.Expect(f.calls()["VirtualMachines_Get"]-before).To(Equal(1), "of the one that is to stay")
}
