package main

import (
	"net/http"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// apiFault makes the next count calls of RunInstances fail.
func apiFault(code string, count int) simapi.Fault {
	return simapi.Fault{Action: "RunInstances", Count: count, Error: &simapi.APIError{Code: code, Message: "Because of a test."}}
}

func TestCapacityThenThrottleThenWorks(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	gate := f.gateBackoff()
	f.sim.AddFault(apiFault("InsufficientInstanceCapacity", 1))
	f.sim.AddFault(apiFault("RequestLimitExceeded", 1))
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False InsufficientCapacity"))
	f.Expect(f.condition("m", driverv1.InstanceProvisionedCondition)()).To(Equal("False InsufficientCapacity"))
	gate.open(f, "m")
	f.Eventually(f.ready("m")).Should(Equal("False Throttled"))
	gate.open(f, "m")
	f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(1))
	f.Expect(f.tokens()).To(HaveLen(3))
	f.Expect(f.tokens()[0]).To(HaveSuffix("-1"))
	f.Expect(f.tokens()[1]).To(HaveSuffix("-2"), "a lack of capacity begins a new attempt")
	f.Expect(f.tokens()[2]).To(HaveSuffix("-2"), "a throttled call is repeated")
}

// gate holds every repetition back until it is opened, so that a test sees each condition.
type gate struct{ clock *steppedClock }

func (f *fixture) gateBackoff() gate {
	f.backoff = func(driver.Class, int) time.Duration { return time.Hour }
	return gate{f.clock}
}

func (g gate) open(f *fixture, name string) {
	f.t.Helper()
	g.clock.step(2 * time.Hour)
	f.touch(name)
}

// tokens returns the client tokens of RunInstances in the order of the calls.
func (f *fixture) tokens() []string {
	var tokens []string
	for _, c := range f.sim.Calls() {
		if c.Action == "RunInstances" {
			tokens = append(tokens, c.ClientToken)
		}
	}
	return tokens
}

func TestCAPA2016CapacityMovesToAnotherZone(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{Action: "RunInstances", Parameters: map[string]string{"NetworkInterface.1.SubnetId": subnetA},
		Error: &simapi.APIError{Code: "InsufficientInstanceCapacity"}})
	f.start()
	for _, name := range []string{"m1", "m2", "m3"} {
		f.machine(name, func(m *infrav1.AWSMachine) {
			m.Spec.Subnets = []infrav1.SubnetReference{{ID: subnetA}, {ID: subnetB}}
		})
	}
	for _, name := range []string{"m1", "m2", "m3"} {
		f.Expect(f.becomesReady(name).Status.FailureDomain).To(Equal("us-east-1b"))
	}
	f.Expect(f.instances()).To(HaveLen(3))
}

func TestRefusals(t *testing.T) {
	for _, test := range []struct {
		code, reason string
		failed       bool
	}{
		{"VcpuLimitExceeded", driverv1.QuotaExceededReason, false},
		{"UnauthorizedOperation", driverv1.UnauthorizedReason, false},
		{"AuthFailure", driverv1.UnauthorizedReason, false},
		{"InternalError", driverv1.CloudErrorReason, false},
		{"InvalidAMIID.NotFound", driverv1.UnresolvedReferenceReason, false},
		{"InvalidAMIID.Malformed", driverv1.InvalidConfigurationReason, true},
	} {
		t.Run(test.code, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			gate := f.gateBackoff()
			f.sim.AddFault(apiFault(test.code, 1))
			f.start()
			f.machine("m")
			f.Eventually(f.ready("m")).Should(Equal("False " + test.reason))
			m, err := f.get("m")
			f.Expect(err).NotTo(HaveOccurred())
			f.Expect(m.Status.HasFailed()).To(Equal(test.failed))
			f.touch("m")
			f.Consistently(func() int { return f.calls("RunInstances") }, "200ms").Should(Equal(1), "not repeated before its time")
			gate.open(f, "m")
			if test.failed {
				f.Expect(*m.Status.FailureReason).To(Equal(test.reason))
				f.Consistently(func() int { return f.calls("RunInstances") }, "200ms").Should(Equal(1), "never repeated")
				return
			}
			f.becomesReady("m")
			f.Expect(f.instances()).To(HaveLen(1))
		})
	}
}

func TestLaunchFailsAfterItWasAccepted(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{Action: "RunInstances",
		LaunchFailure: &simapi.StateReason{Code: "Client.InternalError", Message: "Client error on launch"}})
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False InstanceLaunchFailed"))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeTrue())
	f.Expect(*m.Status.FailureMessage).To(ContainSubstring("Client.InternalError"))
	f.Expect(m.Status.Ready).To(BeFalse())
	f.touch("m")
	f.Consistently(func() int { return f.calls("RunInstances") }, "200ms").Should(Equal(1))
}

func TestCAPA1875NoSecretInConditions(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.endpointDown()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False CloudError"))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	for _, c := range m.Status.Conditions {
		f.Expect(c.Message).NotTo(ContainSubstring(strings.TrimPrefix(f.endpoint, "http://")), "a port differs each time")
		f.Expect(c.Message).NotTo(ContainSubstring("cloud-config"))
	}
}

// endpointDown makes every call end without an answer.
func (f *fixture) endpointDown() {
	f.sim.AddFault(simapi.Fault{Action: "*", Cut: simapi.CutBefore})
}

func TestLaunchesArePaced(t *testing.T) {
	f := newFixture(t, simulator.Options{Throttles: map[string]simulator.Throttle{"RunInstances": {Burst: 6, RefillPerSecond: 6}}})
	f.options.LaunchesPerSecond, f.options.LaunchBurst = 5, 1
	f.start()
	names := []string{"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"}
	for _, name := range names {
		f.machine(name)
	}
	for _, name := range names {
		f.becomesReady(name)
	}
	for _, c := range f.sim.Calls() {
		// Zero is a call that is under way.
		f.Expect(c.Status).To(BeElementOf(http.StatusOK, 0), "EC2 never had to throttle %s", c.Action)
	}
	f.Expect(f.reads.Load()).To(BeNumerically("==", len(names)), "what waits for its turn reads no bootstrap data")
}

// A Machine whose bootstrap data is missing leaves the launch to those that have theirs, and takes no turn after that.
func TestAMachineWithoutItsBootstrapDataTakesNoSlot(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.LaunchesPerSecond, f.options.LaunchBurst = 1.0/3600, 1
	f.start()
	f.cluster(true)
	f.awsMachine("lacks", f.ownerMachine("lacks", "lacks", true))
	f.Eventually(f.ready("lacks")).Should(Equal("False WaitingForBootstrapData"))
	read := f.reads.Load()
	f.touch("lacks")
	f.Eventually(f.reads.Load).Should(BeNumerically(">", read), "it is read first from then on")
	f.machine("has")
	f.becomesReady("has")
	f.machine("next")
	f.Eventually(f.ready("next")).Should(Equal("False WaitingForLaunchSlot"))
	f.touch("lacks")
	f.Eventually(f.reads.Load).Should(BeNumerically(">", read+2))
	f.Expect(f.ready("lacks")()).To(Equal("False WaitingForBootstrapData"), "it does not wait for a slot")
}
