package main

import (
	"testing"

	. "github.com/onsi/gomega"

	infrav1 "millwright.dev/providers/aws/api/v1alpha1"
	"millwright.dev/providers/aws/instance"
	simulator "millwright.dev/test/clouds/aws/ec2"
)

// second runs another instance that carries the mark of the object, and returns its ID.
func (f *fixture) second(m *infrav1.AWSMachine) string {
	f.t.Helper()
	id, _ := f.foreign()
	f.mark(id, m)
	return id
}

// alive returns whether an instance still costs money.
func (f *fixture) alive(id string) bool {
	for _, i := range f.instances() {
		if i.ID == id {
			return i.Live()
		}
	}
	return false
}

func TestASecondInstanceIsReportedAndEndedWithTheObject(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.start()
	f.machine("m")
	m := f.becomesReady("m")
	forged, _ := f.foreign()
	f.tag(forged, map[string]string{instance.TagOwnerUID: string(m.UID), instance.TagMachine: "elsewhere/m"})
	id := f.second(m)
	f.Eventually(func() string { f.ready("m")(); return f.messages["m"] }).Should(ContainSubstring(id))
	f.Expect(f.ready("m")()).To(Equal("True InstanceRunning"), "the Node is well")
	f.Expect(f.messages["m"]).NotTo(ContainSubstring(forged))
	f.Eventually(f.events).Should(ContainElement("SecondInstance"))
	f.Expect(f.calls("TerminateInstances")).To(BeZero(), "it may hold a Node, and the object is wanted")

	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.alive(id)).To(BeFalse())
	f.Expect(f.alive(m.Status.InstanceID)).To(BeFalse())
	f.Expect(f.alive(forged)).To(BeTrue(), "the UID alone is no mark")
}

// An instance of an earlier attempt may show when the record has none.
func TestAnUnrecordedInstanceIsEndedWithTheObject(t *testing.T) {
	f := newFixture(t, simulator.Options{})
	f.gateBackoff()
	f.start()
	f.machine("other")
	f.becomesReady("other")
	f.sim.AddFault(apiFault("VcpuLimitExceeded", 0))
	m := f.machine("m")
	f.Eventually(f.ready("m")).Should(Equal("False QuotaExceeded"))
	f.sim.ClearFaults()
	id := f.second(m)
	f.Eventually(f.listsSince(len(f.sim.Calls()))).Should(BeNumerically(">=", 2), "the inventory has seen it")
	f.delete("m")
	f.Eventually(f.gone("m")).Should(BeTrue())
	f.Expect(f.alive(id)).To(BeFalse())
	f.Expect(f.live()).To(Equal(1))
}

// listsSince counts the lists that were answered after the first n calls.
func (f *fixture) listsSince(n int) func() int {
	return func() int {
		count := 0
		for _, c := range f.sim.Calls()[n:] {
			if c.Action == "DescribeInstances" && c.Parameters["Filter.1.Name"] == "tag-key" && c.Done {
				count++
			}
		}
		return count
	}
}
