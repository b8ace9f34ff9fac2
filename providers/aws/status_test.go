package main

import (
	"testing"
	"time"

	. "github.com/onsi/gomega"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

// What EC2's own checks say is a condition of its own; Ready does not depend on it.
func TestInstanceStatusChecks(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.options.StatusInterval = 500 * time.Millisecond
	f.start()
	f.machine("m")
	f.machine("healthy")
	id := f.becomesReady("m").Status.InstanceID
	f.becomesReady("healthy")
	healthy := f.condition("m", driverv1.InstanceHealthyCondition)
	f.Expect(healthy()).To(Equal("none"), "there was nothing to report")

	f.Expect(f.sim.Check(id, simulator.Checks{System: true, Event: "instance-retirement", NotBefore: time.Unix(2e9, 0)})).To(Succeed())
	f.Eventually(healthy).Should(Equal("False InstanceImpaired"))
	f.Expect(f.messages["m"]).
		To(Equal("The instance fails checks of the cloud: system status check, instance-retirement scheduled for 2033-05-18T03:33:20Z"))
	f.Expect(f.ready("m")()).To(Equal("True InstanceRunning"))
	f.Expect(f.condition("healthy", driverv1.InstanceHealthyCondition)()).To(Equal("none"))

	scheduled := f.condition("m", driverv1.InstanceEventScheduledCondition)
	f.Expect(scheduled()).To(Equal("True MaintenanceScheduled"))
	f.Expect(f.messages["m"]).To(Equal("instance-retirement scheduled for 2033-05-18T03:33:20Z"))

	f.Expect(f.sim.Check(id, simulator.Checks{EBS: true})).To(Succeed())
	f.Eventually(func() string { healthy(); return f.messages["m"] }).
		Should(Equal("The instance fails checks of the cloud: attached EBS status check"))
	f.Expect(f.sim.Check(id, simulator.Checks{Event: "system-reboot", NotBefore: time.Unix(2e9, 0)})).To(Succeed())
	f.Eventually(healthy).Should(Equal("True InstanceHealthy"), "a reboot passes")
	f.Expect(scheduled()).To(Equal("True MaintenanceScheduled"))
	f.Expect(f.messages["m"]).To(Equal("system-reboot scheduled for 2033-05-18T03:33:20Z"))
	f.Expect(f.sim.Check(id, simulator.Checks{})).To(Succeed())
	f.Eventually(scheduled).Should(Equal("False NoEventScheduled"))
	f.Expect(f.condition("healthy", driverv1.InstanceEventScheduledCondition)()).To(Equal("none"), "there was nothing to report")
	f.Eventually(f.events).Should(ContainElement("InstanceEventScheduled"))
}
