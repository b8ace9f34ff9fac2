package main

import (
	"bytes"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"millwright.dev/test/sandbox/scenario"
)

// table is the lines of the table of Machines.
func table(machines []scenario.Machine, now time.Time) []string {
	header := []string{"MACHINE", "PHASE", "INSTANCE", "NODE", "AGE", "AWAITED"}
	rows := make([][]string, 0, len(machines))
	for _, m := range machines {
		rows = append(rows, []string{m.Name, m.Phase, dash(m.Instance), node(m), age(now.Sub(m.Created)), m.Awaited})
	}
	return align(header, rows)
}

// align pads the cells of each column to the same width.
func align(header []string, rows [][]string) []string {
	var buffer bytes.Buffer
	writer := tabwriter.NewWriter(&buffer, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		fmt.Fprintln(writer, "  "+strings.Join(row, "\t"))
	}
	_ = writer.Flush()
	return strings.Split(strings.TrimRight(buffer.String(), "\n"), "\n")
}

// changeLine is what is printed of a Machine where no table can be drawn: all but its age.
func changeLine(m scenario.Machine) string {
	line := fmt.Sprintf("%s  %s  %s  %s", m.Name, m.Phase, dash(m.Instance), node(m))
	if m.Awaited != "" {
		line += "  " + m.Awaited
	}
	return line
}

func node(m scenario.Machine) string {
	switch {
	case m.Node == "":
		return "-"
	case m.NodeReady:
		return "Ready"
	case m.Deleting:
		return "leaving"
	default:
		return "not Ready"
	}
}

func dash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

func age(d time.Duration) string { return max(d, 0).Round(time.Second).String() }

// cut shortens a line to the width of the terminal, since a line that wraps cannot be drawn over.
func cut(line string, width int) string {
	runes := []rune(line)
	if len(runes) <= width {
		return line
	}
	return string(runes[:width-1]) + "…"
}
