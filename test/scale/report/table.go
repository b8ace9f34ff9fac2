package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
)

// machineController is the controller whose reconciles have a column of their own.
const machineController = "machine"

const mebibyte = 1 << 20

// column is a figure of a phase.
type column struct {
	title string
	// value is the figure, per what it is divided by.
	value func(*Phase) float64
	// format shows it.
	format string
	// ratio says that ours/upstream of it is worth a row.
	ratio bool
}

var columns = []column{
	{"wall s", func(p *Phase) float64 { return p.WallSeconds }, "%.1f", true},
	{"CPU ms/M", func(p *Phase) float64 { return p.per(p.CPUSeconds * 1000) }, "%.1f", true},
	{"peak MiB", func(p *Phase) float64 { return float64(p.PeakRSSBytes) / mebibyte }, "%.0f", true},
	{"req/M", func(p *Phase) float64 { return p.per(float64(p.Requests)) }, "%.1f", true},
	{"writes/M", func(p *Phase) float64 { return p.per(float64(p.Writes)) }, "%.1f", true},
	{"409", func(p *Phase) float64 { return float64(p.Conflicts) }, "%.0f", false},
	{"Machine reconciles/M", func(p *Phase) float64 { return p.per(float64(p.Reconciles[machineController])) }, "%.1f", true},
}

// per divides by the Machines that the phase was about.
func (p *Phase) per(value float64) float64 {
	if p.Machines == 0 {
		return 0
	}
	return value / float64(p.Machines)
}

func (p *Phase) perEach(counts map[string]int) map[string]float64 {
	divided := make(map[string]float64, len(counts))
	for name, n := range counts {
		divided[name] = p.per(float64(n))
	}
	return divided
}

// Line sums a phase up as soon as it is over.
func Line(r Run, p Phase) string {
	return fmt.Sprintf("%-8s %-6s N=%-5d %-10s %6.1f s wall, %6.2f s CPU, %4.0f MiB, %6.1f requests/M, %6.1f Machine reconciles/M%s",
		r.Core, r.Setting, r.N, p.Name, p.WallSeconds, p.CPUSeconds, float64(p.PeakRSSBytes)/mebibyte,
		p.per(float64(p.Requests)), p.per(float64(p.Reconciles[machineController])), suffix(notes(&p)))
}

func suffix(notes []string) string {
	if len(notes) == 0 {
		return ""
	}
	return " (" + strings.Join(notes, "; ") + ")"
}

// notes have what the figures of a phase do not show.
func notes(p *Phase) []string {
	var notes []string
	if p.NotQuiet {
		notes = append(notes, "the core did not fall quiet")
	}
	if p.DeletesMachines && p.NodesDeleted == 0 {
		notes = append(notes, "deleted no Node")
	}
	if p.DeletesMachines && p.PodsEvicted > 0 {
		notes = append(notes, fmt.Sprintf("evicted %d Pods", p.PodsEvicted))
	}
	return notes
}

// group is the runs that are compared with each other.
type group struct {
	setting string
	n       int
	runs    []*Run
}

func groups(runs []Run) []group {
	var found []group
	for i := range runs {
		r := &runs[i]
		at := slices.IndexFunc(found, func(g group) bool { return g.setting == r.Setting && g.n == r.N })
		if at < 0 {
			found = append(found, group{setting: r.Setting, n: r.N})
			at = len(found) - 1
		}
		found[at].runs = append(found[at].runs, r)
	}
	return found
}

// Tables writes a Markdown table for each setting and N: a row for each phase and core, with the ratio
// of the two below them where both ran, and what was left over.
func Tables(out io.Writer, runs []Run) {
	for _, g := range groups(runs) {
		fmt.Fprintf(out, "\n### %s setting, N = %d\n\n", g.setting, g.n)
		writeComparison(out, g)
		fmt.Fprintln(out)
		writeBreakdowns(out, g)
		writePeaks(out, g)
	}
}

// writeComparison writes a row for each phase and core.
func writeComparison(out io.Writer, g group) {
	writeHeader(out)
	for _, name := range phaseNames(g.runs) {
		writePhase(out, name, g.runs)
	}
}

func writeBreakdowns(out io.Writer, g group) {
	writeBreakdown(out, "Requests per Machine by verb, health probes included", g.runs, func(p *Phase) map[string]int { return p.Verbs })
	writeBreakdown(out, "Reconciles per Machine by controller", g.runs, func(p *Phase) map[string]int { return p.Reconciles })
}

func writePeaks(out io.Writer, g group) {
	for _, r := range g.runs {
		fmt.Fprintf(out, "- %s (%s): peak of all phases %.0f MiB%s\n", r.Core, r.Version, float64(r.PeakRSSBytes())/mebibyte, remains(r))
	}
}

func remains(r *Run) string {
	if r.Leftovers == nil {
		return ""
	}
	if len(r.Leftovers) == 0 {
		return "; nothing left over"
	}
	return "; left over: " + counts(r.Leftovers)
}

func writeHeader(out io.Writer) {
	fmt.Fprint(out, "| phase | core |")
	for _, c := range columns {
		fmt.Fprintf(out, " %s |", c.title)
	}
	fmt.Fprint(out, " note |\n|---|---|")
	fmt.Fprint(out, strings.Repeat("--:|", len(columns)), "---|\n")
}

func writePhase(out io.Writer, name string, runs []*Run) {
	byCore := map[string]*Phase{}
	for _, r := range runs {
		p := r.Phase(name)
		if p == nil {
			continue
		}
		byCore[r.Core] = p
		fmt.Fprintf(out, "| %s | %s |", name, r.Core)
		for _, c := range columns {
			fmt.Fprintf(out, " "+c.format+" |", c.value(p))
		}
		fmt.Fprintf(out, " %s |\n", strings.Join(notes(p), "; "))
	}
	ours, upstream := byCore["ours"], byCore["upstream"]
	if ours == nil || upstream == nil {
		return
	}
	fmt.Fprintf(out, "| | **ours/upstream** |")
	for _, c := range columns {
		fmt.Fprintf(out, " %s |", ratio(c, ours, upstream))
	}
	fmt.Fprintln(out, " |")
}

// ratio is left out where upstream's figure is nothing.
func ratio(c column, ours, upstream *Phase) string {
	if !c.ratio || c.value(upstream) == 0 {
		return ""
	}
	return fmt.Sprintf("**%.2f**", c.value(ours)/c.value(upstream))
}

// phaseNames are the phases of all runs, in the order of the first run that has them.
func phaseNames(runs []*Run) []string {
	var names []string
	for _, r := range runs {
		for i := range r.Phases {
			if !slices.Contains(names, r.Phases[i].Name) {
				names = append(names, r.Phases[i].Name)
			}
		}
	}
	return names
}
