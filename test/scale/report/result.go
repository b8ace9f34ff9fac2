// Package report holds the results of benchmark runs and what is written from them: tables, JSON, the check
// against the budget and the growth over N. It measures nothing.
package report

import (
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/test/scale/measure"
)

// File is what a benchmark writes.
type File struct {
	// Command is the command line.
	Command string `json:"command"`
	// Host is what it ran on.
	Host Host `json:"host"`
	// Runs are in the order of their execution.
	Runs []Run `json:"runs"`
}

// Host is the machine that a benchmark ran on.
type Host struct {
	// CPUs is how many processors the benchmark could use; control plane, stand-ins and core share them.
	CPUs int `json:"cpus"`
	// Model is the processors' name.
	Model string `json:"model"`
	// Memory is in bytes.
	Memory int64 `json:"memoryBytes"`
	// Kernel is the release of the operating system's kernel.
	Kernel string `json:"kernel"`
	// Go is the version that both cores were built with.
	Go string `json:"go"`
}

// Run is the life of one MachineDeployment under one core.
type Run struct {
	Core    string `json:"core"`
	Version string `json:"version"`
	Setting string `json:"setting"`
	// N is the number of replicas.
	N       int       `json:"n"`
	Started time.Time `json:"started"`
	Phases  []Phase   `json:"phases"`
	// Leftovers are the objects that remained after the last phase, by resource, zeros left out. It is
	// nil when the run did not end with a deletion.
	Leftovers map[string]int `json:"leftovers"`
}

// Phase is one stretch of a run.
type Phase struct {
	Name string `json:"name"`
	// Machines are those that the phase was about: what figures per Machine are divided by.
	Machines int `json:"machines"`
	// WallSeconds is the time until the target state of the phase was reached.
	WallSeconds float64 `json:"wallSeconds"`
	// QuietSeconds is the time until the core's own counters changed for the last time, to a second.
	QuietSeconds float64 `json:"quietSeconds"`
	// NotQuiet is true if the core was still active when the wait for its quiet was given up.
	NotQuiet bool `json:"notQuiet,omitempty"`
	// CPUSeconds is what the core's process used until it was quiet.
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakRSSBytes is the core's peak of resident memory within the phase.
	PeakRSSBytes int64 `json:"peakRSSBytes"`
	// Requests are the core's API requests without its health probes.
	Requests int `json:"requests"`
	// Writes are those among the requests that change something.
	Writes int `json:"writes"`
	// Conflicts are the requests that were answered with 409.
	Conflicts int `json:"conflicts"`
	// Verbs are all requests by HTTP method, probes and watches included.
	Verbs map[string]int `json:"verbs"`
	// Probes are the health probes of the target cluster.
	Probes int `json:"probes"`
	// Watches are the watches that were opened.
	Watches int `json:"watches"`
	// Reconciles are by controller.
	Reconciles map[string]int `json:"reconciles"`
	// Results are the reconciles by controller and result.
	Results map[string]int `json:"results"`
	// ByResource are the requests by verb and resource as the API server counted them.
	ByResource map[string]int `json:"byResource"`
	// PerMachine are the figures divided by Machines.
	PerMachine PerMachine `json:"perMachine"`
	// NodesDeleted and PodsEvicted are what happened in the target cluster.
	NodesDeleted int `json:"nodesDeleted"`
	PodsEvicted  int `json:"podsEvicted"`
	// DeletesMachines says that Machines end in this phase, and that a core is expected to drain and
	// delete their Nodes.
	DeletesMachines bool `json:"deletesMachines,omitempty"`
}

// PerMachine are figures of a phase divided by the Machines that it was about.
type PerMachine struct {
	WallMilliseconds float64 `json:"wallMilliseconds"`
	CPUMilliseconds  float64 `json:"cpuMilliseconds"`
	Requests         float64 `json:"requests"`
	Writes           float64 `json:"writes"`
	// Verbs are all requests by HTTP method, Reconciles are by controller.
	Verbs      map[string]float64 `json:"verbs"`
	Reconciles map[string]float64 `json:"reconciles"`
}

// SetCost fills in what the core used; wall time and Machines must be there.
func (p *Phase) SetCost(cost measure.Cost) {
	p.CPUSeconds = cost.CPU.Seconds()
	p.PeakRSSBytes = cost.PeakRSS
	p.Requests = cost.Requests()
	p.Writes = cost.Writes()
	p.Conflicts = cost.Counters.Conflicts
	p.Verbs = cost.Counters.Requests
	p.Probes = cost.Probes()
	p.Watches = cost.Watches()
	p.Reconciles = cost.Counters.Reconciles
	p.Results = cost.Counters.Results
	p.ByResource = cost.ByResource
	p.PerMachine = PerMachine{
		WallMilliseconds: p.per(p.WallSeconds * 1000),
		CPUMilliseconds:  p.per(p.CPUSeconds * 1000),
		Requests:         p.per(float64(p.Requests)),
		Writes:           p.per(float64(p.Writes)),
		Verbs:            p.perEach(p.Verbs),
		Reconciles:       p.perEach(p.Reconciles),
	}
}

// AllReconciles are the reconciles of all controllers but the one that probes target clusters.
func (p *Phase) AllReconciles() int {
	return measure.Counters{Reconciles: p.Reconciles}.AllReconciles()
}

// Phase finds a phase by name; nil when the run has none.
func (r *Run) Phase(name string) *Phase {
	for i := range r.Phases {
		if r.Phases[i].Name == name {
			return &r.Phases[i]
		}
	}
	return nil
}

// PeakRSSBytes is the peak over all phases.
func (r *Run) PeakRSSBytes() int64 {
	var peak int64
	for i := range r.Phases {
		peak = max(peak, r.Phases[i].PeakRSSBytes)
	}
	return peak
}

// Write writes the results as JSON.
func (f *File) Write(path string) error {
	content, err := json.MarshalIndent(f, "", "  ")
	if err != nil {
		return errors.Wrap(err, "encoding results")
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o750); err != nil {
		return errors.Wrap(err, "creating the directory for results")
	}
	return errors.Wrap(os.WriteFile(path, append(content, '\n'), 0o600), "writing results")
}
