package instance_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/gcp/compute"
	"millwright.dev/test/clouds/simulator"
)

// incarnation is a handle as it is passed on by who has looked at the instance.
func (f *fixture) incarnation(h driver.Handle) driver.Handle {
	h.Incarnation = f.observe(h).Value.Incarnation
	f.Expect(h.Incarnation).NotTo(BeEmpty())
	return h
}

// A deletion that Compute Engine accepts and then fails is reported in its words, by one read for each request, and is asked for again.
func TestDelete_OperationFailsLate_IsReported(t *testing.T) {
	for code, expected := range map[string]driver.Class{
		"RESOURCE_IN_USE_BY_ANOTHER_RESOURCE": driver.ClassRefused, "PERMISSIONS_ERROR": driver.ClassAuth, "INTERNAL_ERROR": driver.ClassRefused,
		"CONDITION_NOT_MET": driver.ClassUnresolved, "RATE_LIMIT_EXCEEDED": driver.ClassThrottle, "SOMETHING_NEW": driver.ClassRefused,
	} {
		f := newFixture(t, compute.Options{})
		h := f.incarnation(f.running(launch(zoneA, "one", 1)))
		deleted := func() error { return f.Delete(f.ctx, scope, []driver.Handle{h})[0] }
		f.fault(simulator.Fault{Action: "instances.delete", LaunchFailure: &simulator.Failure{Code: code, Message: "used by tpu-7"}})
		f.Expect(deleted()).To(Succeed())
		for range 5 {
			f.Expect(deleted()).To(Succeed(), "it continues")
		}
		f.Expect(f.count("instances.delete")).To(Equal(1))
		f.Expect(f.count("zoneOperations.get")).To(BeNumerically("<=", 7))
		f.clock.Step(2 * time.Second)
		f.class(deleted(), expected)
		f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceRunning), "what the list says")

		// The next one is asked for, and its predecessor's failure is reported until it has ended.
		f.Expect(deleted()).To(MatchError(And(ContainSubstring(code), ContainSubstring("used by tpu-7"))), code)
		f.Expect(f.count("instances.delete")).To(Equal(2))
		f.clock.Step(2 * time.Second)
		f.class(deleted(), expected)
		f.cloud.ClearFaults()
		f.class(deleted(), expected)
		f.settle()
		f.class(deleted(), driver.ClassNotFound)
	}
}

// A disk whose deletion fails late is reported as well.
func TestCleanup_DiskDeletionFailsLate_IsReported(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.running(launch(zoneA, "one", 1))
	f.Expect(f.cloud.KeepDisks(project, zoneA, "one")).To(Succeed())
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.settle()
	f.fault(simulator.Fault{Action: "disks.delete", LaunchFailure: &simulator.Failure{Code: "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
		Message: "snapshot s"}})
	cleaned := func() driver.Answer[[]string] { return f.Cleanup(f.ctx, scope, []driver.Handle{h})[0] }
	f.Expect(cleaned()).To(And(HaveField("Err", BeNil()), HaveField("Value", HaveLen(1))))
	f.Expect(cleaned().Err).NotTo(HaveOccurred())
	f.clock.Step(2 * time.Second)
	f.Expect(cleaned().Err).To(MatchError(ContainSubstring("snapshot s")))
	f.Expect(f.count("disks.delete")).To(Equal(1))
	f.cloud.ClearFaults()
	f.Expect(cleaned().Err).To(HaveOccurred())
	f.Expect(cleaned()).To(Equal(driver.Answer[[]string]{}))
}

// A new process, or an operation that Compute Engine has forgotten, asks for the deletion again.
func TestDelete_OperationForgotten_IsAskedAgain(t *testing.T) {
	f := newFixture(t, compute.Options{})
	h := f.incarnation(f.running(launch(zoneA, "one", 1)))
	f.fault(simulator.Fault{Action: "instances.delete", Count: 1, LaunchFailure: &simulator.Failure{Code: "INTERNAL_ERROR"}})
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.clock.Step(15 * 24 * time.Hour)
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.settle()
	f.class(f.observe(h).Err, driver.ClassNotFound)
}
