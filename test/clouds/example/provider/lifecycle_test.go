package main

import (
	"net/http"
	"testing"

	. "github.com/onsi/gomega"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/clouds/example/cloud"
	"millwright.dev/test/clouds/example/provider/instance"
)

// TestLife: the provider as its main runs it takes a machine to Running, and leaves nothing once the object is deleted.
func TestLife(t *testing.T) {
	f := newFixture(t)
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(m.Spec.ProviderID).To(MatchRegexp("^example:///" + f.account + "/[ab]/m1$"))
	f.Expect(m.Status.Addresses).To(HaveLen(2))
	f.Expect(m.Status.FailureDomain).To(BeElementOf("a", "b"))
	f.Expect(f.resources()).To(HaveLen(4))
	f.Delete(m)
	f.Expect(f.resources()).To(BeEmpty(), "the object stays until nothing is left")
	f.Expect(sim.Count(f.account, instance.LabelOwnerUID, string(m.UID))).To(Equal(cloud.Count{Creates: 1, Most: 1}))
}

// TestCapacityThatShowsLate: the launch was accepted, its operation fails; its parts are deleted, and the next attempt succeeds.
func TestCapacityThatShowsLate(t *testing.T) {
	f := newFixture(t)
	f.fault(cloud.Fault{Call: "CreateMachine", Count: 1, Operation: cloud.OperationFault{
		Fail: &cloud.Failure{Code: cloud.CodeZoneExhausted, Message: "no capacity"}, Parts: 3,
	}})
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(sim.Count(f.account, instance.LabelOwnerUID, string(m.UID))).To(Equal(cloud.Count{Creates: 2, Live: 1, Most: 1}))
	f.Expect(f.resources()).To(HaveLen(4), "nothing of the first attempt")
	f.Delete(m)
	f.Expect(f.resources()).To(BeEmpty())
}

// TestLostAnswers of a launch, of the deletion and of the clean-up create no second machine and leave nothing.
func TestLostAnswers(t *testing.T) {
	f := newFixture(t)
	for _, call := range []string{"CreateMachine", "DeleteMachine", "DeleteInterface"} {
		f.fault(cloud.Fault{Call: call, Count: 1, Break: cloud.LoseAnswer})
	}
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Delete(m)
	f.Expect(f.resources()).To(BeEmpty())
	f.Expect(sim.Count(f.account, instance.LabelOwnerUID, string(m.UID)).Creates).To(Equal(1))
}

// TestReclaimedSpot is a machine that is stopped and has failed permanently.
func TestReclaimedSpot(t *testing.T) {
	f := newFixture(t)
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(HavePrefix("True InstanceRunning"))
	f.Expect(sim.Interrupt(f.account, m.Status.FailureDomain, "m1")).To(BeTrue())
	f.Eventually(f.Ready(m)).Should(HavePrefix("False InstanceInterrupted"))
	f.Expect(m.Status.InstanceState).To(Equal(driverv1.InstanceStopped))
	f.Delete(m)
	f.Expect(f.resources()).To(BeEmpty())
}

// TestARefusal of what can never be right fails the machine, in the cloud's words.
func TestARefusal(t *testing.T) {
	f := newFixture(t)
	f.fault(
		cloud.Fault{
			Call:    "CreateMachine",
			Status:  http.StatusBadRequest,
			Failure: cloud.Failure{Code: cloud.CodeTypeNotFound, Message: "no such type"},
		},
	)
	m := f.machine("m1")
	f.Eventually(f.Ready(m)).Should(And(HavePrefix("False InvalidConfiguration"), ContainSubstring("type_not_found: no such type")))
	f.Delete(m)
	f.Expect(f.resources()).To(BeEmpty())
}
