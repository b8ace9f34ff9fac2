package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"
)

// The phases of machines under an infrastructure provider.
const (
	Launch   = "launch"
	Steady   = "steady state"
	Deletion = "deletion"
)

// runInstances is the one call that a machine cannot do without.
const runInstances = "RunInstances"

// CloudFile is what `make bench-clouds` writes.
type CloudFile struct {
	// Command is the command line.
	Command string `json:"command"`
	// Host is what it ran on.
	Host Host `json:"host"`
	// Account is how the cloud behaved.
	Account CloudAccount `json:"account"`
	// Runs are in the order of their execution.
	Runs []CloudRun `json:"runs"`
}

// CloudAccount is how the simulated account behaved.
type CloudAccount struct {
	// PendingSeconds and ShuttingDownSeconds are how long an instance takes to start and to end; it cannot be found for the
	// first ConsistencySeconds.
	PendingSeconds      float64 `json:"pendingSeconds"`
	ShuttingDownSeconds float64 `json:"shuttingDownSeconds"`
	ConsistencySeconds  float64 `json:"consistencySeconds"`
}

// CloudRun is the life of machines under one infrastructure provider.
type CloudRun struct {
	Provider string `json:"provider"`
	Version  string `json:"version"`
	// N is the number of Machines.
	N       int          `json:"n"`
	Started time.Time    `json:"started"`
	Phases  []CloudPhase `json:"phases"`
	// Leftovers are what remained in the cloud after the deletion, by kind, zeros left out.
	Leftovers map[string]int `json:"leftovers"`
}

// CloudPhase is one stretch of a run.
type CloudPhase struct {
	Name string `json:"name"`
	// WallSeconds is the time until the target state of the phase was reached; the length of the window in steady state.
	WallSeconds float64 `json:"wallSeconds"`
	// Calls are those to the cloud by action, refused ones included.
	Calls map[string]int `json:"calls"`
	// Throttled are the calls among them that were refused for their rate, Refused all others without success, by action and code.
	Throttled map[string]int `json:"throttled"`
	Refused   map[string]int `json:"refused"`
	// Requests are those to the API server by verb and resource.
	Requests map[string]int `json:"requests"`
	// Reconciles are by controller.
	Reconciles map[string]int `json:"reconciles"`
	// CPUSeconds and PeakRSSBytes are the provider's.
	CPUSeconds   float64 `json:"cpuSeconds"`
	PeakRSSBytes int64   `json:"peakRSSBytes"`
}

// Phase finds a phase by name; nil when the run has none.
func (r *CloudRun) Phase(name string) *CloudPhase {
	for i := range r.Phases {
		if r.Phases[i].Name == name {
			return &r.Phases[i]
		}
	}
	return nil
}

// launchesAndRest are the calls of launch and deletion together, per Machine.
func (r *CloudRun) launchesAndRest() (launches, rest float64) {
	for i := range r.Phases {
		if r.Phases[i].Name == Steady {
			continue
		}
		for action, n := range r.Phases[i].Calls {
			if action == runInstances {
				launches += float64(n)
			} else {
				rest += float64(n)
			}
		}
	}
	return launches / float64(r.N), rest / float64(r.N)
}

// Write writes the results as JSON.
func (f *CloudFile) Write(path string) error {
	content, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return errors.Wrap(err, "encoding results")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return errors.Wrap(err, "creating the directory for results")
	}
	return errors.Wrap(os.WriteFile(path, append(content, '\n'), 0o600), "writing results")
}

// ReadCloudFile reads what `make bench-clouds` has written.
func ReadCloudFile(path string) (CloudFile, error) {
	var f CloudFile
	content, err := os.ReadFile(filepath.Clean(path))
	if err != nil {
		return f, errors.Wrap(err, "reading results")
	}
	return f, errors.Wrapf(json.Unmarshal(content, &f), "parsing %s", path)
}
