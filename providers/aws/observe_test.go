package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

func TestCAPA2915VanishedInstance(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	f.Expect(f.sim.Vanish(m.Status.InstanceID)).To(Succeed())
	f.Consistently(f.ready("m"), "600ms").Should(Equal("True InstanceRunning"), "absence does not count at once")

	f.clock.step(10 * time.Minute)
	f.touch("m")
	f.Eventually(f.ready("m")).Should(Equal("False InstanceVanished"))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(*m.Status.FailureReason).To(Equal("InstanceVanished"))
	f.Expect(m.Status.InstanceState).To(Equal(driverv1.InstanceMissing))
	f.Expect(m.Status.Ready).To(BeTrue(), "the field of the contract is never taken back")
	f.Expect(f.condition("m", driverv1.InstanceProvisionedCondition)()).To(HavePrefix("True"))
	f.touch("m")
	f.Consistently(func() int { return f.calls("RunInstances") }, "300ms").Should(Equal(1), "never launched again")

	f.Expect(f.client.Delete(f.ctx, m)).To(Succeed())
	f.Eventually(f.gone("m")).Should(BeTrue())
}

func TestVanishedLongAfterItsLaunchIsNoticedByItself(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	f.clock.step(10 * time.Minute)
	f.Expect(f.sim.Vanish(m.Status.InstanceID)).To(Succeed())
	f.Eventually(f.ready("m")).Should(Equal("False InstanceVanished"))
}

func TestKarpenterAWS9226SpotInterruption(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m", func(m *infrav1.AWSMachine) { m.Spec.Spot = &infrav1.Spot{} })
	m := f.becomesReady("m")
	f.Expect(f.sim.Interrupt(m.Status.InstanceID)).To(Succeed())
	f.Eventually(f.ready("m")).Should(Equal("False InstanceInterrupted"))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(*m.Status.FailureReason).To(Equal("InstanceInterrupted"))
	f.Consistently(func() int { return f.calls("RunInstances") }, "300ms").Should(Equal(1))
}

func TestTerminatedByAUser(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	f.terminate(f.becomesReady("m").Status.InstanceID)
	f.Eventually(f.ready("m")).Should(Equal("False InstanceTerminated"))
	f.Eventually(f.events).Should(ContainElement("MachineFailed"))
}

func TestKarpenterAWS5706LaunchTimeout(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Pending: time.Hour}})
	f.start()
	f.machine("m", func(m *infrav1.AWSMachine) { m.Spec.LaunchTimeoutSeconds = new(int32(600)) })
	f.Eventually(f.ready("m")).Should(Equal("False InstancePending"))
	f.clock.step(9 * time.Minute)
	f.touch("m")
	f.Consistently(f.ready("m"), "300ms").Should(Equal("False InstancePending"))
	f.clock.step(2 * time.Minute)
	f.touch("m")
	f.Eventually(f.ready("m")).Should(Equal("False InstanceLaunchTimeout"))
}

func TestObservesAfterRestart(t *testing.T) {
	f := newFixture(t, simulator.Options{Delays: simapi.Delays{Pending: 2 * time.Second}})
	f.start()
	f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False InstancePending"))
	f.stop()
	f.start()
	f.becomesReady("m")
	f.Expect(f.calls("RunInstances")).To(Equal(1))
}

func TestListingFailsForAWhile(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{Action: "DescribeInstances", Count: 3, Error: &simapi.APIError{Code: "UnauthorizedOperation"}})
	f.start()
	f.machine("m")
	f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(1))
}
