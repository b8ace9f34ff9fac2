package report

import (
	"path/filepath"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// cloudRun is a run of 100 Machines that meets the goals.
func cloudRun(adjust ...func(*CloudRun)) *CloudRun {
	r := &CloudRun{
		Provider: "ours", Version: "abc", N: 100, Leftovers: map[string]int{},
		Phases: []CloudPhase{
			{
				Name: Launch, WallSeconds: 60, Calls: map[string]int{"RunInstances": 105, "DescribeInstances": 20},
				Throttled: map[string]int{"RunInstances": 5}, Requests: map[string]int{"patch awsmachines/status": 300, "list awsmachines": 1},
			},
			// Two slow lists fit into three minutes.
			{Name: Steady, WallSeconds: 180, Requests: map[string]int{"update configmaps": 1, "list awsmachines": 1}, Calls: map[string]int{"DescribeInstances": 3, "DescribeInstanceStatus": 3, "DescribeVolumes": 2}},
			{Name: Deletion, WallSeconds: 60, Calls: map[string]int{"TerminateInstances": 2, "DescribeInstances": 8}},
		},
	}
	for _, a := range adjust {
		a(r)
	}
	return r
}

// TestCloudGoals has a case for each goal in which it is missed.
func TestCloudGoals(t *testing.T) {
	for name, test := range map[string]struct {
		adjust func(*CloudRun)
		missed string
	}{
		"all are met, each to the last call": {adjust: func(*CloudRun) {}},
		"a launch too many": {
			adjust: func(r *CloudRun) { r.Phases[0].Calls["RunInstances"]++ },
			missed: "RunInstances per Machine: 1.06, at most 1.05",
		},
		"a read too many, whichever phase it is in": {
			adjust: func(r *CloudRun) { r.Phases[2].Calls["DescribeVolumes"] = 1 },
			missed: "all other calls of launch and deletion, per Machine: 0.31, at most 0.30",
		},
		"a call too many while nothing happens": {
			adjust: func(r *CloudRun) { r.Phases[1].Calls["DescribeInstances"]++ },
			missed: "calls in steady state, whatever the number of Machines: 9, at most 8",
		},
		"a launch while nothing happens": {
			adjust: func(r *CloudRun) { r.Phases[1].Calls = map[string]int{"RunInstances": 9} },
			missed: "calls in steady state",
		},
		"a write while nothing happens": {
			adjust: func(r *CloudRun) {
				r.Phases[1].Requests = map[string]int{"update secrets": 1, "patch awsmachines/status 409": 1}
			},
			missed: "2, at most 1",
		},
		"an instance left over": {
			adjust: func(r *CloudRun) { r.Leftovers["instances"] = 1 },
			missed: "left over: 1, at most 0",
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			run := cloudRun(test.adjust)
			missed := MissedCloudGoals(run)
			var table strings.Builder
			CloudGoals(&table, run)
			if test.missed == "" {
				g.Expect(missed).To(BeEmpty())
				g.Expect(table.String()).NotTo(ContainSubstring("missed"))
				return
			}
			g.Expect(missed).To(ConsistOf(ContainSubstring(test.missed)))
			g.Expect(strings.Count(table.String(), "missed")).To(Equal(1))
		})
	}
}

// TestSteadyLimit follows the window and the pages of a list, not the number of Machines.
func TestSteadyLimit(t *testing.T) {
	g := NewWithT(t)
	limit := func(n int, seconds float64) float64 {
		return steadyLimit(cloudRun(func(r *CloudRun) { r.N, r.Phases[1].WallSeconds = n, seconds }))
	}
	g.Expect(limit(1, 180)).To(Equal(8.0))
	g.Expect(limit(1000, 180)).To(Equal(8.0))
	g.Expect(limit(1001, 180)).To(Equal(11.0), "a second page for each of three lists")
	g.Expect(limit(1, 660)).To(Equal(8.0 + 9.0 + 2.0))
}

func TestCloudTables(t *testing.T) {
	g := NewWithT(t)
	other := cloudRun(func(r *CloudRun) {
		r.Provider, r.Version = "capa", "v2"
		r.Phases[0].Calls = map[string]int{"RunInstances": 100, "DescribeVpcs": 900}
		r.Phases[0].Refused = map[string]int{"RunInstances InternalError": 2}
		r.Leftovers = map[string]int{"volumes": 3}
	})
	var table strings.Builder
	CloudTables(&table, []CloudRun{*cloudRun(), *other})
	g.Expect(table.String()).To(And(
		ContainSubstring("| launch | ours | 60 | 125 | 1.25 | 5 | 3.01 | 3.00 |"),
		ContainSubstring("| launch | capa | 60 | 1000 | 10.00 | 5 |"),
		ContainSubstring("| | **ours/capa** | **1.000** | | **0.125** |"),
		ContainSubstring("| EC2 action | ours, launch | ours, steady state | ours, deletion | capa, launch |"),
		ContainSubstring("| DescribeVpcs | | | | 900 | | |"),
		ContainSubstring("- ours (abc), N = 100: nothing left over"),
		ContainSubstring("- capa (v2), N = 100: refused: 2 RunInstances InternalError; left over: 3 volumes"),
	))
}

// TestCloudDocument writes into its own section, and into no other.
func TestCloudDocument(t *testing.T) {
	g := NewWithT(t)
	path := filepath.Join(t.TempDir(), "results.json")
	file := CloudFile{Host: Host{CPUs: 2, Model: "m", Go: "go1"}, Runs: []CloudRun{*cloudRun()}}
	g.Expect(file.Write(path)).To(Succeed())
	read, err := ReadCloudFile(path)
	g.Expect(err).NotTo(HaveOccurred())

	const page = "a\n<!-- bench:goals -->\nb\n<!-- bench:end -->\n<!-- clouds -->\nold\n<!-- clouds:end -->\nc\n"
	updated, err := CloudDocument(page, read)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(updated).To(HavePrefix("a\n<!-- bench:goals -->\nb\n<!-- bench:end -->\n<!-- clouds -->\n"))
	g.Expect(updated).To(HaveSuffix("<!-- clouds:end -->\nc\n"))
	g.Expect(updated).To(And(Not(ContainSubstring("old")), ContainSubstring("| RunInstances per Machine | 1.05 | 1.05 |")))
	again, err := CloudDocument(updated, read)
	g.Expect(err).NotTo(HaveOccurred())
	g.Expect(again).To(Equal(updated), "written twice it is the same")

	_, err = CloudDocument("a page without", read)
	g.Expect(err).To(MatchError(ContainSubstring("no section <!-- clouds -->")))
}
