package instance_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/azure/arm"
	"millwright.dev/test/clouds/simulator"
)

// timedOut is the code of a machine that runs and whose agent has not reported.
const timedOut = "OSProvisioningTimedOut"

// views counts the calls for the run time status of one machine.
func (f *fixture) views() int { return f.calls()["VirtualMachines_InstanceView"] }

// fails has Azure report a machine as failed, with power as it is; without a code it is well again.
func (f *fixture) fails(h driver.Handle, code string) {
	f.Expect(f.cloud.FailUpdate(h.ProviderID[len("azure://"):], code)).To(Succeed())
}

func (f *fixture) silence(h driver.Handle, silent bool) {
	f.Expect(f.cloud.Silence(h.ProviderID[len("azure://"):], silent)).To(Succeed())
}

func (f *fixture) states() map[driverv1.InstanceState]int {
	found := map[driverv1.InstanceState]int{}
	for _, i := range f.list() {
		found[i.State]++
	}
	return found
}

// TestWhyAMachineHasFailed is asked again until it is known; meanwhile nothing is concluded.
func TestWhyAMachineHasFailed(t *testing.T) {
	f := newFixture(t, arm.Options{})
	f.fault(simulator.Fault{Action: "VirtualMachines_InstanceView", Count: 1, Error: &simulator.APIError{Code: "InternalServerError"}})
	f.fault(simulator.Fault{Action: "VirtualMachines_CreateOrUpdate", Count: 1, LaunchFailure: &simulator.Failure{Code: "AllocationFailed"}})
	f.running(launch("m1"))
	f.Expect(f.list()[0].State).To(Equal(driverv1.InstancePending))
	f.Expect(f.list()[0]).To(And(HaveField("State", driverv1.InstanceFailed), HaveField("Refused", driver.ClassCapacity)))
}

// TestFailedMachinesThatRun cost one call each, ten in each list at most, and none of them is reported as starting again meanwhile.
func TestFailedMachinesThatRun(t *testing.T) {
	f := newFixture(t, arm.Options{})
	var machines []driver.Handle
	for i := range 25 {
		machines = append(machines, f.accepted(launch(fmt.Sprintf("m%02d", i))))
	}
	f.clock.Step(creation)
	all := map[driverv1.InstanceState]int{driverv1.InstanceRunning: len(machines)}
	f.Expect(f.states()).To(Equal(all))
	for _, h := range machines {
		f.fails(h, timedOut)
	}
	for range 5 {
		before := f.views()
		f.Expect(f.states()).To(Equal(all))
		f.Expect(f.views()-before).To(BeNumerically("<=", 10), "of each list")
		f.clock.Step(90 * time.Second)
	}
	f.Expect(f.views()).To(Equal(len(machines)), "once for each")
	f.Expect(f.list()).To(HaveEach(HaveField("StateCode", timedOut)))

	// One that is well again is asked about when it fails another time.
	f.fails(machines[0], "")
	f.Expect(f.list()).To(ContainElement(HaveField("StateCode", "")))
	f.fails(machines[0], "VMExtensionProvisioningError")
	f.Expect(f.list()).To(ContainElement(HaveField("StateCode", "VMExtensionProvisioningError")))
	f.Expect(f.views()).To(Equal(len(machines) + 1))
}

// TestAMachineWhoseViewCannotBeRead stays what it was before it failed. A process that has not seen that takes old ones for running, and
// waits for what may be a launch.
func TestAMachineWhoseViewCannotBeRead(t *testing.T) {
	for name, c := range map[string]struct {
		listed bool
		age    time.Duration
		want   driverv1.InstanceState
	}{
		"listed as running":        {listed: true, want: driverv1.InstanceRunning},
		"an old one, never listed": {age: time.Hour, want: driverv1.InstanceRunning},
		"a new one, never listed":  {want: driverv1.InstancePending},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, arm.Options{})
			h := f.running(launch("m1"))
			if c.listed {
				f.list()
			}
			f.fails(h, timedOut)
			f.clock.Step(c.age)
			f.fault(simulator.Fault{Action: "VirtualMachines_InstanceView", Count: 1, Error: &simulator.APIError{Code: "InternalServerError"}})
			f.Expect(f.list()[0].State).To(Equal(c.want))
			f.Expect(f.list()[0]).To(And(HaveField("State", driverv1.InstanceRunning), HaveField("StateCode", timedOut)))
		})
	}
}

// TestAStatusWithoutContent is none: the machine is not taken for one that has failed, which would be ended if it had not run before.
func TestAStatusWithoutContent(t *testing.T) {
	f := newFixture(t, arm.Options{})
	ran, h := f.running(launch("m1")), f.accepted(launch("m2"))
	f.list()
	f.clock.Step(creation)
	for _, h := range []driver.Handle{ran, h} {
		f.fails(h, timedOut)
		f.silence(h, true)
	}
	for range 2 {
		f.Expect(f.list()).To(ConsistOf(
			And(HaveField("Name", "m1"), HaveField("State", driverv1.InstanceRunning), HaveField("Refused", driver.Class(""))),
			And(HaveField("Name", "m2"), HaveField("State", driverv1.InstancePending), HaveField("Refused", driver.Class(""))),
		))
	}
	f.Expect(f.observe(ran).Value.State).To(Equal(driverv1.InstanceRunning))
	f.Expect(f.observe(h).Value).To(And(HaveField("State", driverv1.InstancePending), HaveField("Refused", driver.Class(""))))
	f.silence(h, false)
	f.Expect(f.list()).
		To(ContainElement(And(HaveField("Name", "m2"), HaveField("State", driverv1.InstanceRunning), HaveField("StateCode", timedOut))))
	// What is known stays known.
	f.silence(h, true)
	f.Expect(f.observe(h).Value.StateCode).To(Equal(timedOut))
}

// TestAFailedMachineThatIsStopped is asked about again after a while: that it runs again is in no list.
func TestAFailedMachineThatIsStopped(t *testing.T) {
	f := newFixture(t, arm.Options{})
	h := f.running(launch("m1"))
	f.Expect(f.cloud.PowerOff(h.ProviderID[len("azure://"):])).To(Succeed())
	f.fails(h, timedOut)
	for range 2 {
		f.Expect(f.list()[0].State).To(Equal(driverv1.InstanceStopped))
	}
	f.Expect(f.views()).To(Equal(1))
	f.clock.Step(time.Minute)
	f.Expect(f.list()[0].State).To(Equal(driverv1.InstanceStopped))
	f.Expect(f.views()).To(Equal(2))
}

// TestThrottledViews are a throttled list, for the code that paces the calls; another refusal of a view is not.
func TestThrottledViews(t *testing.T) {
	f := newFixture(t, arm.Options{})
	a, b := f.running(launch("m1")), f.running(launch("m2"))
	f.list()
	f.fails(a, timedOut)
	f.fails(b, timedOut)
	f.fault(
		simulator.Fault{
			Action: "VirtualMachines_InstanceView",
			Count:  1,
			Error:  &simulator.APIError{Code: "TooManyRequests", Status: http.StatusTooManyRequests, RetryAfter: time.Minute},
		},
	)
	_, err := f.List(f.ctx, scope)
	f.class(err, driver.ClassThrottle)
	f.Expect(driver.RetryAfterOf(err)).To(Equal(time.Minute))
	f.Expect(f.views()).To(Equal(1))
	f.fault(
		simulator.Fault{
			Action: "VirtualMachines_InstanceView",
			Count:  2,
			Error:  &simulator.APIError{Code: "AuthorizationFailed", Status: http.StatusForbidden},
		},
	)
	f.Expect(f.states()).To(Equal(map[driverv1.InstanceState]int{driverv1.InstanceRunning: 2}))
}
