package report

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
)

// Resources writes, for each phase of each run, what the requests were for, the most frequent first.
func Resources(out io.Writer, runs []Run) {
	for i := range runs {
		r := &runs[i]
		fmt.Fprintf(out, "\n%s, %s setting, N = %d: requests by resource\n", r.Core, r.Setting, r.N)
		for j := range r.Phases {
			p := &r.Phases[j]
			fmt.Fprintf(out, "  %s (%d Machines)\n", p.Name, p.Machines)
			for _, name := range byCount(p.ByResource) {
				fmt.Fprintf(out, "    %7d %7.2f/M  %s\n", p.ByResource[name], p.per(float64(p.ByResource[name])), name)
			}
			fmt.Fprintf(out, "    reconciles: %s\n", counts(p.Results))
		}
	}
}

// byCount orders names by their counts, the largest first.
func byCount(values map[string]int) []string {
	return slices.SortedFunc(maps.Keys(values), func(a, b string) int {
		return cmp.Or(cmp.Compare(values[b], values[a]), cmp.Compare(a, b))
	})
}

func counts(values map[string]int) string {
	parts := make([]string, 0, len(values))
	for _, name := range byCount(values) {
		parts = append(parts, fmt.Sprintf("%d %s", values[name], name))
	}
	return strings.Join(parts, ", ")
}
