package instance_test

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/example/cloud"
)

// TestALaunchThatFailsLate leaves parts, which Cleanup deletes; the next attempt has the same name.
func TestALaunchThatFailsLate(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.cloud.Exhaust("a")
	h := f.accepted(launch("a", "m1", 1))
	f.settle()
	f.Expect(f.observe(h).Value.Refused).To(Equal(driver.ClassCapacity))
	f.class(f.Delete(f.ctx, scope, []driver.Handle{h})[0], driver.ClassNotFound)
	f.Expect(f.cloud.Resources(account, nil)).To(HaveLen(3))
	f.Expect(f.clean(h)).To(Equal(3))
	f.Expect(f.cloud.Resources(account, nil)).To(BeEmpty(), "the disk as well")

	second := f.running(launch("b", "m1", 2))
	f.Expect(f.observe(second).Value.State).To(Equal(driverv1.InstanceRunning))
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceFailed), "the first stays what it was")
}

// TestAFailedLaunchIsNotTheNextOnes: a machine of the same name in the same zone is not that of the operation that has failed.
func TestAFailedLaunchIsNotTheNextOnes(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.cloud.AddFault(cloud.Fault{Count: 1, Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeQuotaExceeded}}})
	first := f.accepted(launch("a", "m1", 1))
	f.settle()
	second := f.accepted(launch("a", "m1", 2))
	f.Expect(f.observe(first).Value).To(And(HaveField("State", driverv1.InstanceFailed), HaveField("Token", "a-m1-1")))
	f.Expect(f.observe(second).Value).To(And(HaveField("State", driverv1.InstancePending), HaveField("Token", "a-m1-2")))
	both := f.Observe(f.ctx, scope, []driver.Handle{first, second})
	f.Expect(both).To(HaveExactElements(HaveField("Value.State", driverv1.InstanceFailed), HaveField("Value.State", driverv1.InstancePending)))
}

// TestAFailedMachineThatIsKept has a provider ID, by which it is deleted.
func TestAFailedMachineThatIsKept(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.cloud.AddFault(
		cloud.Fault{Count: 1, Operation: cloud.OperationFault{Fail: &cloud.Failure{Code: cloud.CodeZoneExhausted}, Parts: 3, Keep: true}},
	)
	h := f.accepted(launch("a", "m1", 1))
	f.settle()
	failed := f.observe(h).Value
	f.Expect(failed).To(And(HaveField("State", driverv1.InstanceFailed), HaveField("Refused", driver.ClassCapacity),
		HaveField("ProviderID", "example:///acme/a/m1")))
	all, err := f.List(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(all).To(HaveExactElements(failed), "once, not as an operation again")
	h.ProviderID = failed.ProviderID
	f.Expect(f.observe(h).Value).To(Equal(failed))
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.settle()
	f.class(f.observe(h).Err, driver.ClassNotFound)
	f.clean(h)
	f.Expect(f.cloud.Resources(account, nil)).To(BeEmpty())
}

// TestALaunchIsDeletedWhileItRuns: by its name, without a provider ID. What it had created by then is cleaned up.
func TestALaunchIsDeletedWhileItRuns(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	h := f.accepted(launch("a", "m1", 1))
	f.clock.Step(2 * time.Second)
	f.Expect(f.Delete(f.ctx, scope, []driver.Handle{h})).To(Equal([]error{nil}))
	f.settle()
	f.Expect(f.observe(h).Value).To(And(HaveField("State", driverv1.InstanceFailed), HaveField("StateCode", cloud.CodeCancelled)))
	f.Expect(f.clean(h)).To(BeNumerically(">", 1))
	f.Expect(f.cloud.Resources(account, nil)).To(BeEmpty())
}

// TestAnOperationThatNeverEnds stays pending.
func TestAnOperationThatNeverEnds(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.cloud.AddFault(cloud.Fault{Operation: cloud.OperationFault{Never: true}})
	h := f.accepted(launch("a", "m1", 1))
	f.clock.Step(24 * time.Hour)
	f.Expect(f.observe(h).Value).To(And(HaveField("State", driverv1.InstancePending), HaveField("ProviderID", "")))
}

// TestALaunchWhoseAnswerWasLost is found by its name, with the mark, although its operation is not known.
func TestALaunchWhoseAnswerWasLost(t *testing.T) {
	f := newFixture(t, cloud.Options{})
	f.cloud.AddFault(cloud.Fault{Call: "CreateMachine", Count: 1, Break: cloud.LoseAnswer})
	_, err := f.Create(f.ctx, launch("a", "m1", 1))
	f.class(err, driver.ClassUnknown)
	h := handle(launch("a", "m1", 1), "")
	f.Expect(h.Owns(f.observe(h).Value)).To(BeTrue())
	f.Expect(f.observe(h).Value.Token).To(Equal("a-m1-1"))
}

// TestAnOperationThatIsForgotten: only the machine counts, or that there is none.
func TestAnOperationThatIsForgotten(t *testing.T) {
	f := newFixture(t, cloud.Options{Retention: time.Minute})
	h := f.accepted(launch("a", "m1", 1))
	f.clock.Step(time.Hour)
	f.Expect(f.observe(h).Value.State).To(Equal(driverv1.InstanceRunning))
	f.cloud.Vanish(account, "a", "m1")
	f.class(f.observe(h).Err, driver.ClassNotFound)
}

// TestListsAreWholeOrFail: what is missing from a list would count as gone.
func TestListsAreWholeOrFail(t *testing.T) {
	for _, call := range []string{"ListMachines", "ListOperations"} {
		f := newFixture(t, cloud.Options{PageSize: 1})
		for _, name := range []string{"m1", "m2"} {
			f.running(launch("a", name, 1))
		}
		f.cloud.AddFault(cloud.Fault{Call: call, Break: cloud.LoseAnswer})
		_, err := f.List(f.ctx, scope)
		f.class(err, driver.ClassUnknown)
		f.cloud.ClearFaults()
		f.cloud.AddFault(cloud.Fault{Call: "ListMachines", Skip: 1, Break: cloud.LoseAnswer})
		_, err = f.List(f.ctx, scope)
		f.class(err, driver.ClassUnknown)
	}
}

// TestList has every machine with a mark, of any owner, and the launches that have failed.
func TestList(t *testing.T) {
	f := newFixture(t, cloud.Options{PageSize: 1})
	f.running(launch("a", "m1", 1))
	f.cloud.Exhaust("b")
	f.accepted(launch("b", "m2", 1))
	f.settle()
	f.unmarked("m4")
	f.accepted(launch("c", "m3", 1))
	all, err := f.List(f.ctx, scope)
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(all).To(HaveExactElements(
		And(HaveField("Name", "m1"), HaveField("State", driverv1.InstanceRunning), HaveField("ProviderID", "example:///acme/a/m1")),
		And(HaveField("Name", "m3"), HaveField("State", driverv1.InstancePending), HaveField("ProviderID", ""), HaveField("Token", "c-m3-1")),
		And(HaveField("Name", "m2"), HaveField("State", driverv1.InstanceFailed), HaveField("ProviderID", ""), HaveField("Token", "b-m2-1"),
			HaveField("Refused", driver.ClassCapacity), HaveField("FailureDomain", "b"), HaveField("InstanceType", "small"))))
}
