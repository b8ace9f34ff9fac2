package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// A deletion that waits for a person, or for what no list shows, is no reason to list the instances of a region fast.
func TestAStuckDeletionDoesNotListFast(t *testing.T) {
	for name, test := range map[string]struct {
		fault simapi.Fault
		ready string
	}{
		"blocked":    {simapi.Fault{Action: "TerminateInstances", Error: &simapi.APIError{Code: "OperationNotPermitted"}}, "False DeletionBlocked"},
		"dependants": {simapi.Fault{Action: "DescribeVolumes", Error: &simapi.APIError{Code: "RequestLimitExceeded"}}, "False Throttled"},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{})
			f.options.InventoryFast, f.options.InventorySlow = 50*time.Millisecond, time.Hour
			f.start()
			f.machine("m")
			f.becomesReady("m")
			f.sim.AddFault(test.fault)
			f.delete("m")
			f.Eventually(f.ready("m")).Should(Equal(test.ready))
			lists := f.listsSince(len(f.sim.Calls()))
			f.Consistently(lists, "1s").Should(BeNumerically("<=", 2), "the one that was due and one under way")
		})
	}
}

// Before the first list a new process does not know what is ending already.
func TestARestartEndsNothingAgain(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{ShuttingDown: time.Hour}})
	f.start()
	for _, name := range []string{"a", "b", "c"} {
		f.machine(name)
		f.becomesReady(name)
		f.delete(name)
		f.Eventually(f.ready(name)).Should(Equal("False TerminatingInstance"))
	}
	f.Eventually(func() int { return f.calls("TerminateInstances") }).Should(Equal(3))
	f.stop()
	f.sim.AddFault(simapi.Fault{ID: "slow", Action: "DescribeInstances", HoldBefore: true})
	f.start()
	f.Eventually(f.holding("slow")).Should(Equal(1))
	f.Consistently(func() int { return f.calls("TerminateInstances") }, "300ms").Should(Equal(3))
	f.sim.ClearFaults()
	f.Eventually(f.listsSince(len(f.sim.Calls()))).Should(BeNumerically(">=", 2))
	f.Expect(f.calls("TerminateInstances")).To(Equal(3))
}
