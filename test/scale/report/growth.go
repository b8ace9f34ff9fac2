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
	runs = slices.SortedFunc(slices.Values(runs), func(a, b Run) int { return a.N - b.N })
	fmt.Fprintf(out, "\n### growth of %s, %s setting\n\n| phase | figure |", runs[0].Core, runs[0].Setting)
	for i := range runs {
		fmt.Fprintf(out, " N = %d |", runs[i].N)
	}
	fmt.Fprint(out, " growth |\n|---|---|", strings.Repeat("--:|", len(runs)+1), "\n")
	pointers := make([]*Run, 0, len(runs))
	for i := range runs {
		pointers = append(pointers, &runs[i])
	}
	for _, name := range phaseNames(pointers) {
		for _, c := range columns {
			if c.title == "req/M" || c.title == "CPU ms/M" || c.title == "Machine reconciles/M" {
				writeGrowth(out, name, c, pointers)
			}
		}
	}
	writeMemory(out, pointers)
}

func writeGrowth(out io.Writer, name string, c column, runs []*Run) {
	fmt.Fprintf(out, "| %s | %s |", name, c.title)
	var first, largest float64
	for i, r := range runs {
		p := r.Phase(name)
		if p == nil {
			fmt.Fprint(out, " |")
			continue
		}
		value := c.value(p)
		if i == 0 {
			first = value
		}
		largest = max(largest, value)
		fmt.Fprintf(out, " %.2f |", value)
	}
	if first == 0 {
		fmt.Fprintln(out, " |")
		return
	}
	fmt.Fprintf(out, " %.2f |\n", largest/first)
}

func writeMemory(out io.Writer, runs []*Run) {
	fmt.Fprint(out, "| all | peak MiB |")
	for _, r := range runs {
		fmt.Fprintf(out, " %.0f |", float64(r.PeakRSSBytes())/mebibyte)
	}
	fmt.Fprint(out, " |\n")
	if len(runs) < 2 {
		return
	}
	first, last := runs[0], runs[len(runs)-1]
	perMachine := float64(last.PeakRSSBytes()-first.PeakRSSBytes()) / float64(last.N-first.N) / kibibyte
	fmt.Fprintf(out, "\nEach Machine beyond N = %d took %.0f KiB of the peak.\n", first.N, perMachine)
}

func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
