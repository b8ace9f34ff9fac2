package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// TestTwoReplicasDuringALeaderChangeMakeOneInstance: the old leader stalls in its launch, which gets to EC2 after the new leader has
// launched and recorded the instance. Both continue side by side for a while.
func TestTwoReplicasDuringALeaderChangeMakeOneInstance(t *testing.T) {
	for name, fault := range map[string]simapi.Fault{
		"the call gets there late": {ID: "hold", Action: "RunInstances", Count: 1, HoldBefore: true},
		"its answer comes late":    {ID: "hold", Action: "RunInstances", Count: 1, HoldAfter: true},
	} {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, simulator.Options{Delays: simapi.Delays{Consistency: 300 * time.Millisecond}})
			f.options.CloudTimeout, f.options.VisibilityGrace = time.Hour, time.Hour
			f.sim.AddFault(fault)
			f.start()
			stopOld := f.stop
			f.machine("m")
			f.Eventually(f.holding("hold")).Should(Equal(1))

			f.start()
			stopNew := f.stop
			m := f.becomesReady("m")
			f.sim.ReleaseFault("hold")
			f.Eventually(f.holding("hold")).Should(BeZero())
			lists := f.listsSince(len(f.sim.Calls()))
			f.touch("m")
			f.Eventually(lists).Should(BeNumerically(">=", 4))

			f.Expect(f.instances()).To(HaveLen(1))
			f.Expect(m.Status.InstanceID).To(Equal(f.instances()[0].ID))
			// The old leader writes what it was answered, that the instance is pending, perhaps after all of this.
			f.Eventually(f.ready("m")).Should(Equal("True InstanceRunning"))
			f.Expect(f.messages["m"]).To(BeEmpty(), "no second one is reported either")
			stopOld()
			f.stop = stopNew
			f.delete("m")
			f.Eventually(f.gone("m")).Should(BeTrue())
			f.Expect(f.alive(f.instances()[0].ID)).To(BeFalse())
		})
	}
}
