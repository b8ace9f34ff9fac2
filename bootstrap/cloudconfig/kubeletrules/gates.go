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

func gateNames() []string {
	var names []string
	for line := range strings.Lines(featureGates) {
		names = append(names, strings.Fields(line)[0])
	}
	slices.Sort(names)
	return names
}
