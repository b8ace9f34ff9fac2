package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/sandbox/scenario"
)

// printTimeline prints when each Machine reached each phase, and what it cost.
func (d *demo) printTimeline(ctx context.Context) error {
	calls, err := d.sandbox.EC2.Calls(ctx)
	if err != nil {
		return errors.Wrap(err, "reading the calls of EC2")
	}
	written, err := d.sandbox.Writes(d.sandbox.Core)
	if err != nil {
		return err
	}
	d.screen.close()
	lives := d.scenario.Watch.Timeline().Lives()
	fmt.Println("\nTimeline: seconds from the creation of each Machine; EC2 calls that name its instance alone")
	for _, line := range timelineTable(lives, calls) {
		fmt.Println(line)
	}
	n := len(lives)
	fmt.Printf("\nEC2 calls: %s\n  in all %d, %.1f per Machine\n", actions(calls), len(calls), per(len(calls), n))
	fmt.Printf("\nCore writes, events left out\n")
	for _, line := range writesTable(d.atRunning, machinesAtFirst, written, n) {
		fmt.Println(line)
	}
	return nil
}

func timelineTable(lives []scenario.Life, calls []simapi.Call) []string {
	header := append([]string{"MACHINE", "INSTANCE"}, scenario.Moments...)
	header = append(header, "EC2 CALLS")
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
		rows = append(rows, append(row, strconv.Itoa(callsFor(life.Machine.Instance, calls))))
	}
	return align(header, rows)
}

// callsFor counts the calls that were made for one instance; a list of all instances serves everyone.
func callsFor(instance string, calls []simapi.Call) int {
	count := 0
	for _, call := range calls {
		if len(call.Resources) == 1 && call.Resources[0] == instance {
			count++
		}
	}
	return count
}

func actions(calls []simapi.Call) string {
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
