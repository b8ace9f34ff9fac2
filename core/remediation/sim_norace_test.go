//go:build !race

package remediation_test

// seeds are how many scenarios run unless SIMULATION_RUNS says otherwise.
const seeds = 120
