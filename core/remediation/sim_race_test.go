//go:build race

package remediation_test

// seeds are how many scenarios run unless SIMULATION_RUNS says otherwise. The race detector makes one five times as long, and there is
// nothing for it to find in one goroutine: three of each scenario reach what the next 84 seeds reach, and notice what these notice
// (README.md).
const seeds = 36
