package machinedeployment

import (
	"fmt"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/coretest/workers"
)

// TestCrashWhileRollingOut ends the process at each write of a set, from the first set to the deletion of the last outdated one, writes of
// the status aside. Whatever happens, one set and its Machines are left in the end, and no Machine more than the surge allows has existed
// in between.
func TestCrashWhileRollingOut(t *testing.T) {
	t.Parallel()
	crashAtEach(t, workers.Crashes{
		Counts: writesOf("MachineSet"),
		Alone:  "create MachineSet 2",
		Want:   map[string]int{"create MachineSet": 2, "patch MachineSet": 7},
	}, rollOutWithCrashes)
}

// writesOf are the writes of objects of a kind, but for those of the status.
func writesOf(kind string) func(string) bool {
	writes := []string{"create " + kind, "patch " + kind, "delete " + kind}
	return func(write string) bool { return slices.Contains(writes, write) }
}

func isSet(object client.Object) bool {
	_, ok := object.(*clusterv1.MachineSet)
	return ok
}

// crashAtEach runs a scenario with crashes before the effects of writes and, beside that, after them.
func crashAtEach(t *testing.T, all workers.Crashes, scenario func(*testing.T, *workers.Crash)) {
	t.Helper()
	for _, after := range []bool{false, true} {
		t.Run(fmt.Sprintf("after its effect: %t", after), func(t *testing.T) {
			t.Parallel()
			all.Run(t, after, scenario)
		})
	}
}

// survive starts processes that crash, as many as it takes until the goal is reached.
func (w *world) survive(t *testing.T, c *workers.Crash, goal func(Gomega)) {
	t.Helper()
	w.Survive(c, func(wrap ...func(client.WithWatch) client.Client) { w.start(t, wrap...) }, goal)
}

func rollOutWithCrashes(t *testing.T, c *workers.Crash) {
	t.Helper()
	w := newWorld(t)
	w.deployment(2)
	onTemplate := func(name string) func(Gomega) {
		return func(g Gomega) {
			w.running(2)(g)
			g.Expect(w.listSets()[0].Spec.Template.Spec.InfrastructureRef.Name).To(Equal(name))
		}
	}
	var stop func()
	w.survive(t, c, func(g Gomega) {
		if stop == nil {
			onTemplate("a")(g)
			stop = w.watchNumbers(3, 2)
			w.update(toTemplateB)
		}
		onTemplate("b")(g)
	})
	stop()
}
