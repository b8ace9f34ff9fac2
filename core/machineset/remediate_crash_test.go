package machineset

import (
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/remediation"
	"millwright.dev/test/coretest/workers"
)

// namesIn are the names of the living Machines of a set.
func (w *world) namesIn(set string) []string {
	var names []string
	for _, machine := range w.living() {
		if machine.Labels["set"] == set {
			names = append(names, machine.Name)
		}
	}
	slices.Sort(names)
	return names
}

// replacedOnce is satisfied when each of these has one Machine that replaces it, and the set has forgotten them.
func (w *world) replacedOnce(g Gomega, names []string) {
	var replaced []string
	for _, machine := range w.living() {
		if record := remediation.RecordOf(&machine); record != nil {
			replaced = append(replaced, record.Machine)
		}
	}
	g.Expect(replaced).To(ConsistOf(names))
	g.Expect(w.current().Annotations).NotTo(HaveKey(remediation.ReplacingAnnotation))
}

// TestCrashWhileRemediating ends the process at each write: never are more Machines on their way out than the limit
// allows, and none is forgotten.
func TestCrashWhileRemediating(t *testing.T) {
	want := map[string]int{
		"delete Machine": 1, "patch MachineSet": 2, "patch status of Machine": 2, "patch status of MachineSet": 1,
	}
	crashes(t, "delete Machine 1", want, func(t *testing.T, c *workers.Crash) {
		w := newWorld(t)
		deployment := w.deployment("1", ptr.To(intstr.FromInt32(1)))
		w.set(3, of(deployment, "s", "1"))
		w.start(t)
		w.Eventually(w.settled(3))
		w.Stop()
		unhealthy := w.namesIn("s")[:2]
		w.findUnhealthy(unhealthy...)
		w.survive(t, c, func(g Gomega) {
			g.Expect(w.deletingNow()).To(Equal(1))
			w.reports(clusterv1.MachineSetRemediatingCondition, clusterv1.MachineSetRemediatingReason, "Waiting until others are available")(g)
		})
		w.Eventually(func(g Gomega) {
			g.Expect([]string{w.fate(unhealthy[0]), w.fate(unhealthy[1])}).To(ConsistOf(
				clusterv1.MachineSetMachineRemediationMachineDeletingReason, clusterv1.MachineSetMachineRemediationDeferredReason))
			g.Expect(w.deletingNow()).To(Equal(1))
		})
		w.Eventually(func(g Gomega) {
			if w.deletingNow() > 1 {
				t.Fatal("two at once")
			}
			w.endMachines()
			w.bringUp()
			g.Expect(livingNames(w)).NotTo(ContainElement(BeElementOf(unhealthy)))
			w.replacedOnce(g, unhealthy)
			w.settled(3)(g)
		})
	})
}
