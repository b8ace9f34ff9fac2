package report

import (
	"fmt"
	"io"
	"math"
	"time"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/orphans"
)

// pageSize is how many instances one page of a list has.
const pageSize = 1000

const (
	// statusLists are the lists of what fails or is scheduled: the instance check, the system check, scheduled events.
	statusLists = 3
	// orphanLists are those of a scan for orphans: volumes and network interfaces that are attached to nothing.
	orphanLists = 2
)

// cloudGoal is a figure that our provider must reach.
type cloudGoal struct {
	figure string
	// format shows limit and figure.
	format string
	value  func(*CloudRun) float64
	limit  func(*CloudRun) float64
}

// cloudGoals are those of the project.
var cloudGoals = []cloudGoal{
	{
		"RunInstances per Machine", "%.2f",
		func(r *CloudRun) float64 { launches, _ := r.launchesAndRest(); return launches },
		func(*CloudRun) float64 { return 1.05 },
	},
	{
		"all other calls of launch and deletion, per Machine", "%.2f",
		func(r *CloudRun) float64 { _, rest := r.launchesAndRest(); return rest },
		func(*CloudRun) float64 { return 0.3 },
	},
	{
		"calls in steady state, whatever the number of Machines", "%.0f",
		func(r *CloudRun) float64 { return float64(total(r.Phase(Steady).Calls)) },
		steadyLimit,
	},
	{
		"writes to the API server in steady state, one for each scan for orphans", "%.0f",
		func(r *CloudRun) float64 { return float64(r.Phase(Steady).writes()) },
		func(r *CloudRun) float64 { return times(r, orphans.DefaultPeriod) },
	},
	{
		"instances, volumes and interfaces left over", "%.0f",
		func(r *CloudRun) float64 { return float64(total(r.Leftovers)) },
		func(*CloudRun) float64 { return 0 },
	},
}

// steadyLimit is how many calls a window may have in which nothing happens: the slow lists of all instances, which have a page for each
// thousand, the status lists and the scans for orphans that fit into it.
func steadyLimit(r *CloudRun) float64 {
	pages := math.Ceil(float64(r.N) / pageSize)
	return pages*times(r, driver.DefaultListSlow) + statusLists*times(r, driver.DefaultStatusInterval) +
		orphanLists*times(r, orphans.DefaultPeriod)
}

// times is how often something with such a period may happen in the window; in the worst case it begins with one.
func times(r *CloudRun, period time.Duration) float64 {
	return math.Floor(r.Phase(Steady).WallSeconds/period.Seconds()) + 1
}

// CloudGoals writes each goal with what a run of our provider reached.
func CloudGoals(out io.Writer, r *CloudRun) {
	fmt.Fprint(out, "| Goal | at most | reached |\n|---|--:|--:|\n")
	for _, g := range cloudGoals {
		limit := goal{format: g.format, limit: g.limit(r)}
		fmt.Fprintf(out, "| %s | "+g.format+" | %s |\n", g.figure, limit.limit, limit.cell(g.value(r), true))
	}
}

// MissedCloudGoals are the goals that a run misses, in words.
func MissedCloudGoals(r *CloudRun) []string {
	var missed []string
	for _, g := range cloudGoals {
		if value, limit := g.value(r), g.limit(r); value > limit {
			missed = append(missed, fmt.Sprintf("%s: "+g.format+", at most "+g.format, g.figure, value, limit))
		}
	}
	return missed
}
