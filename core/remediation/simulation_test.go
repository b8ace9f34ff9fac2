package remediation_test

import (
	"maps"
	"os"
	"slices"
	"strconv"
	"testing"
)

// tracing is whether a seed is repeated.
var tracing = os.Getenv("SEED") != "" && os.Getenv("SIMULATION_RUNS") == "1"

// TestSimulation runs seeds, each of which is a scenario with other dice: as many as SIMULATION_RUNS says, from SEED on. One alone logs
// what happens.
func TestSimulation(t *testing.T) {
	runs, first, failed := uint64(seeds), uint64(0), 0
	if n, err := strconv.ParseUint(os.Getenv("SIMULATION_RUNS"), 10, 32); err == nil {
		runs = n
	}
	if n, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		first = n
	}
	most := 10
	if n, err := strconv.Atoi(os.Getenv("FAILURES")); err == nil {
		most = n
	}
	names := slices.Sorted(maps.Keys(scenarios))
	for seed := first; seed < first+runs && failed < most; seed++ {
		name := names[seed%uint64(len(names))]
		if s := scenarios[name](seed); s.violation != "" {
			failed++
			t.Errorf("seed %d, %s: %s", seed, name, s.violation)
		}
	}
}
