package drivers

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"

	"millwright.dev/providers/driver/drivertest"
)

// fewer is how many times the goal of 300 Machines the reads may be of the few of an ordinary run, which share the same lists.
const fewer = 4

// TestCallsPerMachine limits the calls of the drivers per Machine, with all created and deleted at once, and prints the figures.
// MACHINES is how many; the goals are those of 300, which make bench-clouds measures. PAGE is how many items a page of Azure's lists has.
func TestCallsPerMachine(t *testing.T) {
	machines := int(number("MACHINES", 50))
	for _, test := range []struct {
		cloud        string
		measure      func(*testing.T, int) drivertest.Figures
		launch, ends string
		// rest is how many other calls a Machine may cost, from its creation to its end.
		rest float64
	}{
		{"AWS", func(t *testing.T, n int) drivertest.Figures { return drivertest.Measure(t, awsProvider(), n) }, "RunInstances", "TerminateInstances", 0.5},
		{"Azure", func(t *testing.T, n int) drivertest.Figures { return drivertest.Measure(t, azureProvider(), n) },
			"VirtualMachines_CreateOrUpdate", "VirtualMachines_Delete", 0.5},
		{"GCP", func(t *testing.T, n int) drivertest.Figures { return drivertest.Measure(t, gcpProvider(), n) },
			"instances.insert", "instances.delete", 1.5},
	} {
		t.Run(test.cloud, func(t *testing.T) {
			g := NewWithT(t)
			figures := test.measure(t, machines)
			report(t, test.cloud, machines, figures)
			g.Expect(figures.All(test.launch)).To(Equal(machines))
			g.Expect(figures.All(test.ends)).To(BeNumerically("<=", machines))
			g.Expect(figures.Deleted["instances.get"]).To(BeZero(), "a deletion needs no read of its own where the list has an answer")
			others := func(name string) bool { return name != test.launch && name != test.ends }
			rest := drivertest.Sum(figures.Created, others) + drivertest.Sum(figures.Deleted, others)
			if machines < 300 {
				test.rest *= fewer
			}
			g.Expect(float64(rest)/float64(machines)).To(BeNumerically("<=", test.rest), "calls per Machine beside launch and deletion")
			g.Expect(drivertest.Sum(figures.Idle, func(string) bool { return true })).
				To(BeNumerically("<=", 150), "calls in half an hour, for all Machines")
		})
	}
}

// report prints a row for each call, as docs/performance.md has them.
func report(t *testing.T, cloud string, machines int, f drivertest.Figures) {
	names := map[string]bool{}
	for _, phase := range []map[string]int{f.Created, f.Idle, f.Deleted} {
		for name := range phase {
			names[name] = true
		}
	}
	var rows strings.Builder
	per := func(n int) string { return fmt.Sprintf("%.3g", float64(n)/float64(machines)) }
	for _, name := range slices.Sorted(maps.Keys(names)) {
		_, _ = fmt.Fprintf(&rows, "| %s | `%s` | %s | %d | %s |\n", cloud, name, per(f.Created[name]), f.Idle[name], per(f.Deleted[name]))
	}
	t.Logf("%d Machines\n%s", machines, rows.String())
	if os.Getenv("MACHINES") != "" {
		fmt.Print(rows.String())
	}
}
