package report

import (
	"fmt"
	"io"
	"strings"
)

// Results are what docs/performance.md shows: the cores side by side, and the growth of ours.
type Results struct {
	// Compared are the runs of both cores, Growth those of ours at rising N.
	Compared, Growth []Run
}

// goal is a figure that ours must reach.
type goal struct {
	phase, figure string
	limit         float64
	// format shows limit and figure.
	format string
	// value is the figure of a group, false when the group does not have it.
	value func(group) (float64, bool)
}

// goals are those of the project, in the order of a Machine's life.
var goals = []goal{
	{"scale-up", "requests per Machine", 11, "%.1f", ofOurs("scale-up", requestsPerMachine)},
	{"scale-up", "Machine reconciles per Machine", 12, "%.1f", ofOurs("scale-up", machineReconciles)},
	{"scale-up", "CPU, of upstream's", 0.35, "%.2f", ofUpstreams("scale-up", cpu)},
	{"scale-up", "wall time, of upstream's", 0.6, "%.2f", ofUpstreams("scale-up", wall)},
	{"idle", "requests", 0, "%.0f", ofOurs("idle", requests)},
	{"idle", "reconciles", 0, "%.0f", ofOurs("idle", reconciles)},
	{"heartbeats", "requests", 0, "%.0f", ofOurs("heartbeats", requests)},
	{"heartbeats", "reconciles", 0, "%.0f", ofOurs("heartbeats", reconciles)},
	{"restart", "writes", 0, "%.0f", ofOurs("restart", func(p *Phase) float64 { return float64(p.Writes) })},
	{"restart", "CPU, of upstream's", 0.5, "%.2f", ofUpstreams("restart", cpu)},
	{"rollout", "requests per Machine", 26, "%.1f", ofOurs("rollout", requestsPerMachine)},
	{"rollout", "Machine reconciles per Machine", 30, "%.1f", ofOurs("rollout", machineReconciles)},
	{"rollout", "CPU, of upstream's", 0.2, "%.2f", ofUpstreams("rollout", cpu)},
	{"rollout", "wall time, of upstream's", 0.5, "%.2f", ofUpstreams("rollout", wall)},
	{"delete", "requests per Machine, beside one per evicted Pod", 11, "%.1f", ofOurs("delete", requestsPerMachine)},
	{"delete", "Machine reconciles per Machine", 14, "%.1f", ofOurs("delete", machineReconciles)},
	{"delete", "CPU, of upstream's", 0.4, "%.2f", ofUpstreams("delete", cpu)},
	{"all", "objects left over", 0, "%.0f", leftovers},
	{"all", "peak memory, of upstream's", 0.5, "%.2f", peak},
}

func requestsPerMachine(p *Phase) float64 { return p.per(float64(p.Requests - p.PodsEvicted)) }
func machineReconciles(p *Phase) float64  { return p.per(float64(p.Reconciles[machineController])) }
func cpu(p *Phase) float64                { return p.CPUSeconds }
func wall(p *Phase) float64               { return p.WallSeconds }
func requests(p *Phase) float64           { return float64(p.Requests - p.Watches) }
func reconciles(p *Phase) float64         { return float64(p.AllReconciles()) }

// core is the run of a core within a group, nil when there is none.
func (g group) core(name string) *Run {
	for _, r := range g.runs {
		if r.Core == name {
			return r
		}
	}
	return nil
}

// phase is a phase of a core within a group, nil when there is none.
func (g group) phase(core, name string) *Phase {
	if r := g.core(core); r != nil {
		return r.Phase(name)
	}
	return nil
}

func ofOurs(phase string, of func(*Phase) float64) func(group) (float64, bool) {
	return func(g group) (float64, bool) {
		ours := g.phase("ours", phase)
		if ours == nil {
			return 0, false
		}
		return of(ours), true
	}
}

func ofUpstreams(phase string, of func(*Phase) float64) func(group) (float64, bool) {
	return func(g group) (float64, bool) {
		ours, upstream := g.phase("ours", phase), g.phase("upstream", phase)
		if ours == nil || upstream == nil || of(upstream) == 0 {
			return 0, false
		}
		return of(ours) / of(upstream), true
	}
}

func leftovers(g group) (float64, bool) {
	ours := g.core("ours")
	if ours == nil || ours.Leftovers == nil {
		return 0, false
	}
	sum := 0
	for _, n := range ours.Leftovers {
		sum += n
	}
	return float64(sum), true
}

// peak has a goal where the Cluster has only a kubeconfig, at the sizes that are compared there.
func peak(g group) (float64, bool) {
	ours, upstream := g.core("ours"), g.core("upstream")
	if g.setting != "first" || ours == nil || upstream == nil || upstream.PeakRSSBytes() == 0 {
		return 0, false
	}
	return float64(ours.PeakRSSBytes()) / float64(upstream.PeakRSSBytes()), true
}

// Goals writes each goal with what was reached: a column for each setting and N, and one for the growth.
func Goals(out io.Writer, r Results) {
	compared := groups(r.Compared)
	fmt.Fprint(out, "| Phase | Figure | Goal |")
	for _, g := range compared {
		fmt.Fprintf(out, " N = %d, %s setting |", g.n, g.setting)
	}
	fmt.Fprintf(out, " growth |\n|---|---|--:|%s\n", strings.Repeat("--:|", len(compared)+1))
	for _, goal := range goals {
		fmt.Fprintf(out, "| %s | %s | ≤ "+goal.format+" |", goal.phase, goal.figure, goal.limit)
		for _, g := range compared {
			fmt.Fprintf(out, " %s |", goal.cell(goal.value(g)))
		}
		fmt.Fprintln(out, " |")
	}
	for _, goal := range growthGoals(r.Growth) {
		fmt.Fprintf(out, "| %s | %s | ≤ "+goal.format+" |%s %s |\n", goal.phase, goal.figure, goal.limit,
			strings.Repeat(" |", len(compared)), goal.cell(goal.value(group{})))
	}
}

// cell shows what was reached, in bold when the goal was missed. The comparison is of the shown figure.
func (g goal) cell(value float64, found bool) string {
	if !found {
		return ""
	}
	shown := fmt.Sprintf(g.format, value)
	var rounded float64
	if _, err := fmt.Sscan(shown, &rounded); err == nil && rounded > g.limit {
		return "**" + shown + ", missed**"
	}
	return shown
}

// growthGoals are those about rising N: the largest figure of any phase against that at the smallest N.
func growthGoals(runs []Run) []goal {
	sorted := byN(runs)
	if len(sorted) < 2 {
		return nil
	}
	span := fmt.Sprintf("from N = %d to %d", sorted[0].N, sorted[len(sorted)-1].N)
	fixed := func(value float64) func(group) (float64, bool) {
		return func(group) (float64, bool) { return value, true }
	}
	largest := func(title string) float64 {
		var most float64
		for _, c := range columns {
			for _, name := range phaseNames(sorted) {
				if c.title == title {
					most = max(most, grown(name, c, sorted))
				}
			}
		}
		return most
	}
	return []goal{
		{"all", "KiB of the peak for each further Machine, " + span, 60, "%.0f", fixed(perFurtherMachine(sorted))},
		{"all", "requests per Machine, " + span, 1.3, "%.2f", fixed(largest("req/M"))},
		{"all", "CPU per Machine, " + span, 1.3, "%.2f", fixed(largest("CPU ms/M"))},
	}
}
