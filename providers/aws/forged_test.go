package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	. "github.com/onsi/gomega"
	"sigs.k8s.io/controller-runtime/pkg/client"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/driver/inframachine"
	simulator "millwright.dev/test/clouds/aws/ec2"
	"millwright.dev/test/clouds/aws/simapi"
)

// withRecord sets the record of a launch, as anyone who may write AWSMachines can.
func withRecord(record string) func(*infrav1.AWSMachine) {
	return func(m *infrav1.AWSMachine) {
		m.Annotations = map[string]string{inframachine.LaunchAnnotation: record}
		m.Finalizers = []string{inframachine.Finalizer}
	}
}

// lastCall is the latest call in the object's record.
func (f *fixture) lastCall(name string) func() time.Time {
	return func() time.Time {
		var record struct{ LastCall time.Time }
		m, err := f.get(name)
		if err != nil || json.Unmarshal([]byte(m.Annotations[inframachine.LaunchAnnotation]), &record) != nil {
			return time.Time{}
		}
		return record.LastCall
	}
}

// A policy of the management cluster may allow some subnets only; the launch record is no way around it.
func TestAPlaceThatIsOnlyInTheRecordIsNotUsed(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("closed", withRecord(fmt.Sprintf(`{"uid":"u1","attempt":1,"placement":%q,"failureDomain":"us-east-1b"}`, subnetB)))
	f.becomesReady("closed")
	f.Expect(f.perSubnet()).To(Equal(map[string]int{subnetA: 1}))

	now := f.clock.Now().UTC().Format(time.RFC3339)
	f.machine("open", withRecord(fmt.Sprintf(`{"uid":"u2","attempt":1,"placement":%q,"firstCall":%q,"lastCall":%q}`, subnetB, now, now)))
	f.Eventually(f.ready("open")).Should(Equal("False WaitingForLaunchOutcome"), func() string { return f.messages["open"] })
	f.Expect(f.messages["open"]).To(ContainSubstring(subnetB))
	f.clock.step(6 * time.Minute)
	f.touch("open")
	f.becomesReady("open")
	f.Expect(f.perSubnet()).To(Equal(map[string]int{subnetA: 2}))
}

// Something with the token may run all the same: it is found and kept, wherever it is.
func TestAnInstanceAtAPlaceThatTheSpecNoLongerAllowsIsKept(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.sim.AddFault(simapi.Fault{ID: "hold", Action: "RunInstances", HoldAfter: true})
	f.start()
	f.machine("m")
	f.Eventually(f.holding("hold")).Should(Equal(1))
	f.stop()
	f.sim.ClearFaults()
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	base := m.DeepCopy()
	m.Annotations[inframachine.LaunchAnnotation] = strings.ReplaceAll(m.Annotations[inframachine.LaunchAnnotation], subnetA, subnetB)
	f.Expect(f.client.Patch(f.ctx, m, client.MergeFrom(base))).To(Succeed())
	f.start()
	f.becomesReady("m")
	f.Expect(f.instances()).To(HaveLen(1))
}

// A call in the future is a lie, or one of another process whose clock is ahead.
func TestACallInTheFutureHoldsUpNoDeletion(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	future := f.clock.Now().Add(1000 * time.Hour).UTC().Format(time.RFC3339)
	f.machine("m", withRecord(fmt.Sprintf(`{"uid":"u","attempt":1,"placement":%q,"firstCall":%q,"lastCall":%q}`, subnetA, future, future)),
		func(m *infrav1.AWSMachine) { m.OwnerReferences = nil })
	f.delete("m")
	f.Eventually(f.ready("m")).Should(Equal("False WaitingForLaunchOutcome"))
	f.Eventually(f.lastCall("m")).Should(BeTemporally("<=", f.clock.Now().Add(time.Minute)))
	f.clock.step(6 * time.Minute)
	f.touch("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
}

// The Node gets the provider ID of the zone where the instance is: no Machine with another one finds it.
func TestAProviderIDOfAnotherZoneIsReported(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	id, right := f.foreign()
	f.start()
	m := f.awsMachine("m", nil, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = "aws:///us-east-1b/" + id })
	f.mark(id, m)
	f.Eventually(f.ready("m")).Should(Equal("False InvalidConfiguration"), func() string { return f.messages["m"] })
	f.Expect(f.messages["m"]).To(And(ContainSubstring("spec.providerID"), ContainSubstring(right)))
	m, err := f.get("m")
	f.Expect(err).NotTo(HaveOccurred())
	f.Expect(m.Status.HasFailed()).To(BeFalse())
	f.Expect(f.messages["m"]).NotTo(ContainSubstring("second"))
	f.Expect(f.events()).NotTo(ContainElement("SecondInstance"))

	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.live()).To(BeZero())
	f.Expect(f.calls("TerminateInstances")).To(Equal(1))
}

// That another instance has the mark makes the cloud be asked early about the one that is named; its absence proves no more than
// otherwise.
func TestAnInstanceThatIsNotListedYetHasNotVanishedBecauseOfAnother(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	m := f.awsMachine("m", nil, func(m *infrav1.AWSMachine) { m.Spec.ProviderID = "aws:///" + zoneA + "/i-0123456789abcdef0" })
	id, _ := f.foreign()
	f.mark(id, m)
	f.Eventually(f.asksAbout("i-0123456789abcdef0")).Should(BeTrue())
	f.Eventually(f.ready("m")).Should(Equal("False InstanceNotVisible"), func() string { return f.messages["m"] })
	f.Consistently(f.ready("m"), "500ms").Should(Equal("False InstanceNotVisible"))
	f.clock.step(6 * time.Minute)
	f.touch("m")
	f.Eventually(f.ready("m")).Should(Equal("False InstanceVanished"))
	f.Expect(f.alive(id)).To(BeTrue())
}

// asksAbout returns whether the cloud was asked for that instance alone.
func (f *fixture) asksAbout(id string) func() bool {
	return func() bool {
		for _, c := range f.sim.Calls() {
			if c.Action == "DescribeInstances" && c.Done && c.Parameters["InstanceId.1"] == id {
				return true
			}
		}
		return false
	}
}
