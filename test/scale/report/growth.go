package report

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

const kibibyte = 1 << 10

// Growth writes how the cost per Machine changes with N: for each phase the requests, reconciles and CPU
// time per Machine at each N and, in the last column, the largest of them against that at the smallest
// N; and how much memory each further Machine takes. The runs are of one core and one setting.
func Growth(out io.Writer, runs []Run) {
	if len(runs) == 0 {
		return
	}
	fmt.Fprintf(out, "\n### growth of %s, %s setting\n\n", runs[0].Core, runs[0].Setting)
	writeGrowthTable(out, byN(runs))
}

// byN sorts runs by their size.
func byN(runs []Run) []*Run {
	sorted := make([]*Run, 0, len(runs))
	for i := range runs {
		sorted = append(sorted, &runs[i])
	}
	slices.SortFunc(sorted, func(a, b *Run) int { return a.N - b.N })
	return sorted
}

func writeGrowthTable(out io.Writer, runs []*Run) {
	fmt.Fprint(out, "| phase | figure |")
	for _, r := range runs {
		fmt.Fprintf(out, " N = %d |", r.N)
	}
	fmt.Fprint(out, " growth |\n|---|---|", strings.Repeat("--:|", len(runs)+1), "\n")
	for _, name := range phaseNames(runs) {
		for _, c := range columns {
			if c.title == "req/M" || c.title == "CPU ms/M" || c.title == "Machine reconciles/M" {
				writeGrowth(out, name, c, runs)
			}
		}
	}
	writeMemory(out, runs)
}

func writeGrowth(out io.Writer, name string, c column, runs []*Run) {
	fmt.Fprintf(out, "| %s | %s |", name, c.title)
	for _, r := range runs {
		p := r.Phase(name)
		if p == nil {
			fmt.Fprint(out, " |")
			continue
		}
		fmt.Fprintf(out, " %.2f |", c.value(p))
	}
	if most := grown(name, c, runs); most > 0 {
		fmt.Fprintf(out, " %.2f |\n", most)
		return
	}
	fmt.Fprintln(out, " |")
}

// grown is the largest value of a figure against that at the smallest N; zero when that is nothing.
func grown(name string, c column, runs []*Run) float64 {
	var first, largest float64
	for i, r := range runs {
		p := r.Phase(name)
		if p == nil {
			continue
		}
		value := c.value(p)
		if i == 0 {
			first = value
		}
		largest = max(largest, value)
	}
	if first == 0 {
		return 0
	}
	return largest / first
}

func writeMemory(out io.Writer, runs []*Run) {
	fmt.Fprint(out, "| all | peak MiB |")
	for _, r := range runs {
		fmt.Fprintf(out, " %.0f |", float64(r.PeakRSSBytes())/mebibyte)
	}
	fmt.Fprint(out, " |\n")
	if len(runs) > 1 {
		fmt.Fprintf(out, "\nEach Machine beyond N = %d took %.0f KiB of the peak.\n", runs[0].N, perFurtherMachine(runs))
	}
}

// perFurtherMachine is how many KiB the peak grows with each Machine beyond the smallest N.
func perFurtherMachine(runs []*Run) float64 {
	first, last := runs[0], runs[len(runs)-1]
	return float64(last.PeakRSSBytes()-first.PeakRSSBytes()) / float64(last.N-first.N) / kibibyte
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
