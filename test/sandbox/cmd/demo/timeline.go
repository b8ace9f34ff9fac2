package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/simulator"
	"millwright.dev/test/sandbox"
	"millwright.dev/test/sandbox/scenario"
)

// printTimeline prints when each Machine reached each phase, and what it cost.
func (d *demo) printTimeline(ctx context.Context) error {
	calls := map[string][]simulator.Call{}
	for _, c := range d.sandbox.Clouds {
		made, err := c.Client().Calls(ctx)
		if err != nil {
			return errors.Wrapf(err, "reading the calls of %s", c.Title)
		}
		calls[c.Title] = made
	}
	written, err := d.sandbox.Writes(d.sandbox.Core)
	if err != nil {
		return err
	}
	d.screen.close()
	lives := d.scenario.Watch.Timeline().Lives()
	fmt.Println("\nTimeline: seconds from the creation of each Machine")
	for _, line := range timelineTable(lives) {
		fmt.Println(line)
	}
	n := len(lives)
	for _, c := range d.sandbox.Clouds {
		made, of := calls[c.Title], machinesOf(c, lives)
		fmt.Printf("\nCalls of %s: %s\n  in all %d, %.1f for each of its %d Machines\n", c.Title, actions(made), len(made), per(len(made), of), of)
	}
	fmt.Printf("\nCore writes, events left out\n")
	for _, line := range writesTable(d.atRunning, d.all(d.first), written, n) {
		fmt.Println(line)
	}
	return nil
}

func timelineTable(lives []scenario.Life) []string {
	header := append([]string{"MACHINE", "INSTANCE"}, scenario.Moments...)
	rows := make([][]string, 0, len(lives))
	for _, life := range lives {
		row := []string{life.Machine.Name, dash(life.Machine.Instance)}
		for _, moment := range scenario.Moments {
			cell := "-"
			if after, ok := life.After(moment); ok {
				cell = fmt.Sprintf("%.1f", after.Seconds())
			}
			row = append(row, cell)
		}
		rows = append(rows, row)
	}
	return align(header, rows)
}

// machinesOf counts the Machines of a cloud.
func machinesOf(c *sandbox.Cloud, lives []scenario.Life) int {
	count := 0
	for _, life := range lives {
		if life.Machine.Deployment == c.Deployment {
			count++
		}
	}
	return count
}

func actions(calls []simulator.Call) string {
	counts := map[string]int{}
	for _, call := range calls {
		counts[call.Action]++
	}
	return join(counts)
}

// writesTable shows what was written until the first Machines ran, and in the lives of all.
func writesTable(first map[string]int, machinesFirst int, all map[string]int, machines int) []string {
	header := []string{"WRITE", fmt.Sprintf("UNTIL %d RAN", machinesFirst), fmt.Sprintf("LIVES OF %d", machines)}
	var rows [][]string
	sumFirst, sumAll := 0, 0
	for _, name := range slices.Sorted(maps.Keys(all)) {
		rows = append(rows, []string{name, strconv.Itoa(first[name]), strconv.Itoa(all[name])})
		sumFirst += first[name]
		sumAll += all[name]
	}
	rows = append(rows,
		[]string{"in all", strconv.Itoa(sumFirst), strconv.Itoa(sumAll)},
		[]string{"per Machine", fmt.Sprintf("%.1f", per(sumFirst, machinesFirst)), fmt.Sprintf("%.1f", per(sumAll, machines))})
	return align(header, rows)
}

func join(counts map[string]int) string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(counts)) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	return strings.Join(parts, ", ")
}

func per(count, machines int) float64 {
	if machines == 0 {
		return 0
	}
	return float64(count) / float64(machines)
}
