package kubeletrules

import (
	_ "embed" // the table of feature gates
	"slices"
	"strings"
)

// Versions are the minor versions of the kubelet that the table covers.
var Versions = []string{"1.34", "1.35", "1.36"}

// featureGates has a line for each gate: its name, and for each of Versions on or off, the default; ON or OFF, a default that cannot
// be changed; or -, where a kubelet does not know it and does not start.
//
//go:embed featuregates.txt
var featureGates string

// gateStates returns the states of all gates by name.
func gateStates() map[string][]string {
	out := map[string][]string{}
	for line := range strings.Lines(featureGates) {
		words := strings.Fields(line)
		out[words[0]] = words[1:]
	}
	return out
}

// GateNames returns the names of all feature gates of the table.
func GateNames() []string {
	var names []string
	for line := range strings.Lines(featureGates) {
		names = append(names, strings.Fields(line)[0])
	}
	slices.Sort(names)
	return names
}

// GateState returns the state of a feature gate in a version of the kubelet, as the table writes it.
func GateState(name, version string) string {
	index, _ := indexOf(version)
	row := gateStates()[name]
	if index < 0 || len(row) <= index {
		return "-"
	}
	return row[index]
}
