package report

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

// cloudPhases are the phases in their order.
var cloudPhases = []string{Launch, Steady, Deletion}

// writes are the requests to the API server that change something.
func (p *CloudPhase) writes() int {
	n := 0
	for name, count := range p.Requests {
		verb, _, _ := strings.Cut(name, " ")
		if !slices.Contains([]string{"get", "list", "watch"}, verb) {
			n += count
		}
	}
	return n
}

// statusWrites are the writes to a status.
func (p *CloudPhase) statusWrites() int {
	n := 0
	for name, count := range p.Requests {
		if _, resource, _ := strings.Cut(name, " "); strings.Contains(resource, "/status") {
			n += count
		}
	}
	return n
}

func total(counts map[string]int) int {
	n := 0
	for _, count := range counts {
		n += count
	}
	return n
}

// cloudColumns are the figures of a phase beside its calls by action.
var cloudColumns = []struct {
	title  string
	format string
	value  func(r *CloudRun, p *CloudPhase) float64
}{
	{"wall s", "%.0f", func(_ *CloudRun, p *CloudPhase) float64 { return p.WallSeconds }},
	{"calls", "%.0f", func(_ *CloudRun, p *CloudPhase) float64 { return float64(total(p.Calls)) }},
	{"calls/M", "%.2f", func(r *CloudRun, p *CloudPhase) float64 { return float64(total(p.Calls)) / float64(r.N) }},
	{"throttled", "%.0f", func(_ *CloudRun, p *CloudPhase) float64 { return float64(total(p.Throttled)) }},
	{"API requests/M", "%.2f", func(r *CloudRun, p *CloudPhase) float64 { return float64(total(p.Requests)) / float64(r.N) }},
	{"status writes/M", "%.2f", func(r *CloudRun, p *CloudPhase) float64 { return float64(p.statusWrites()) / float64(r.N) }},
	{"reconciles/M", "%.1f", func(r *CloudRun, p *CloudPhase) float64 { return float64(total(p.Reconciles)) / float64(r.N) }},
	{"CPU ms/M", "%.1f", func(r *CloudRun, p *CloudPhase) float64 { return p.CPUSeconds * 1000 / float64(r.N) }},
	{"peak MiB", "%.0f", func(_ *CloudRun, p *CloudPhase) float64 { return float64(p.PeakRSSBytes) / mebibyte }},
}

// CloudTables writes what each phase cost under each provider: with the ratio of ours to each other one, the calls by action, and what
// was refused or left over.
func CloudTables(out io.Writer, runs []CloudRun) {
	fmt.Fprint(out, "| phase | provider |")
	for _, c := range cloudColumns {
		fmt.Fprintf(out, " %s |", c.title)
	}
	fmt.Fprintf(out, "\n|---|---|%s\n", strings.Repeat("--:|", len(cloudColumns)))
	for _, name := range cloudPhases {
		for i := range runs {
			writeCloudPhase(out, &runs[i], name)
		}
		for i := range runs {
			writeCloudRatio(out, runs, &runs[i], name)
		}
	}
	fmt.Fprintln(out)
	writeActions(out, runs)
	fmt.Fprintln(out)
	for i := range runs {
		writeRest(out, &runs[i])
	}
}

func writeCloudPhase(out io.Writer, r *CloudRun, name string) {
	p := r.Phase(name)
	if p == nil {
		return
	}
	fmt.Fprintf(out, "| %s | %s |", name, r.Provider)
	for _, c := range cloudColumns {
		fmt.Fprintf(out, " "+c.format+" |", c.value(r, p))
	}
	fmt.Fprintln(out)
}

// writeCloudRatio writes the ratio of ours to another provider, where both have the phase.
func writeCloudRatio(out io.Writer, runs []CloudRun, other *CloudRun, name string) {
	at := slices.IndexFunc(runs, func(r CloudRun) bool { return r.Provider == "ours" })
	if at < 0 || other.Provider == "ours" || runs[at].Phase(name) == nil || other.Phase(name) == nil {
		return
	}
	fmt.Fprintf(out, "| | **ours/%s** |", other.Provider)
	for _, c := range cloudColumns {
		theirs := c.value(other, other.Phase(name))
		if c.title == "calls" || theirs == 0 {
			fmt.Fprint(out, " |")
			continue
		}
		fmt.Fprintf(out, " **%.3f** |", c.value(&runs[at], runs[at].Phase(name))/theirs)
	}
	fmt.Fprintln(out)
}

// writeActions writes the calls by action: a row for each, a column for each provider and phase.
func writeActions(out io.Writer, runs []CloudRun) {
	totals := map[string]int{}
	fmt.Fprint(out, "| EC2 action |")
	columns := 0
	for i := range runs {
		for _, p := range runs[i].Phases {
			fmt.Fprintf(out, " %s, %s |", runs[i].Provider, p.Name)
			columns++
			for action, n := range p.Calls {
				totals[action] += n
			}
		}
	}
	fmt.Fprintf(out, "\n|---|%s\n", strings.Repeat("--:|", columns))
	for _, action := range byCount(totals) {
		fmt.Fprintf(out, "| %s |", action)
		for i := range runs {
			for _, p := range runs[i].Phases {
				if n := p.Calls[action]; n > 0 {
					fmt.Fprintf(out, " %d |", n)
				} else {
					fmt.Fprint(out, " |")
				}
			}
		}
		fmt.Fprintln(out)
	}
}

// writeRest writes what was refused, except throttled calls, and what was left over.
func writeRest(out io.Writer, r *CloudRun) {
	fmt.Fprintf(out, "- %s (%s), N = %d: ", r.Provider, r.Version, r.N)
	refused := map[string]int{}
	for i := range r.Phases {
		for name, n := range r.Phases[i].Refused {
			refused[name] += n
		}
	}
	if len(refused) > 0 {
		fmt.Fprintf(out, "refused: %s; ", counts(refused))
	}
	switch {
	case r.Leftovers == nil:
		fmt.Fprintln(out, "not deleted")
	case len(r.Leftovers) == 0:
		fmt.Fprintln(out, "nothing left over")
	default:
		fmt.Fprintf(out, "left over: %s\n", counts(r.Leftovers))
	}
}

// CloudLine sums a phase up as soon as it is over.
func CloudLine(r *CloudRun, p *CloudPhase) string {
	perMachine := func(n int) float64 { return float64(n) / float64(r.N) }
	return fmt.Sprintf("%-5s N=%-5d %-12s %6.1f s, %6d calls (%.2f/M, %d throttled), %.1f API requests/M", r.Provider, r.N, p.Name,
		p.WallSeconds, total(p.Calls), perMachine(total(p.Calls)), total(p.Throttled), perMachine(total(p.Requests)))
}

// CloudSection is what docs/performance.md shows of a measurement.
func CloudSection(f CloudFile) string {
	return written(func(out io.Writer) {
		if len(f.Runs) > 0 {
			fmt.Fprintf(out, "Measured on %s, on %s.\n\n", f.Runs[0].Started.Format(time.DateOnly), f.Host)
		}
		for i := range f.Runs {
			if f.Runs[i].Provider == "ours" {
				CloudGoals(out, &f.Runs[i])
				fmt.Fprintln(out)
			}
		}
		CloudTables(out, f.Runs)
	})
}
