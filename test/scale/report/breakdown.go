package report

import (
	"fmt"
	"io"
	"strings"
)

// writeBreakdown writes a table of counts per Machine: a row for each phase and core, a column for each
// name that occurs.
func writeBreakdown(out io.Writer, title string, runs []*Run, of func(*Phase) map[string]int) {
	totals := map[string]int{}
	for _, r := range runs {
		for i := range r.Phases {
			for name, n := range of(&r.Phases[i]) {
				totals[name] += n
			}
		}
	}
	if len(totals) == 0 {
		return
	}
	names := byCount(totals)
	fmt.Fprintf(out, "%s:\n\n| phase | core | %s |\n|---|---|%s\n", title, strings.Join(names, " | "), strings.Repeat("--:|", len(names)))
	for _, phase := range phaseNames(runs) {
		for _, r := range runs {
			if p := r.Phase(phase); p != nil {
				fmt.Fprintf(out, "| %s | %s |%s\n", phase, r.Core, cells(p, of(p), names))
			}
		}
	}
	fmt.Fprintln(out)
}

// cells leaves zeros out.
func cells(p *Phase, counts map[string]int, names []string) string {
	var row strings.Builder
	for _, name := range names {
		if counts[name] == 0 {
			row.WriteString(" |")
			continue
		}
		fmt.Fprintf(&row, " %.2f |", p.per(float64(counts[name])))
	}
	return row.String()
}
