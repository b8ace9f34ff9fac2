package standin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"millwright.dev/contracts/conformance/probe"
)

// Cloud is the infrastructure of StandInMachines, in memory. It is its own probe.
type Cloud struct {
	// Start and End are how long machines take to start, and to terminate.
	Start, End time.Duration

	mu       sync.Mutex
	machines map[string]*vm
	launched int
}

type vm struct {
	probe.Machine
	runs, ends time.Time
}

// Zones of the Cloud; machines are in the first one by default.
var Zones = []string{"zone-a", "zone-b"}

// NewCloud returns a Cloud whose machines take a moment to start and to terminate.
func NewCloud() *Cloud {
	return &Cloud{Start: 30 * time.Millisecond, End: 700 * time.Millisecond, machines: map[string]*vm{}}
}

// Machines implements probe.Probe.
func (c *Cloud) Machines(context.Context) ([]probe.Machine, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	var list []probe.Machine
	for _, m := range c.machines {
		list = append(list, m.Machine)
	}
	return list, nil
}

// settle updates the state of all machines.
func (c *Cloud) settle() {
	now := time.Now()
	for id, m := range c.machines {
		switch {
		case !m.ends.IsZero() && now.After(m.ends):
			delete(c.machines, id)
		case !m.ends.IsZero():
			m.Running = false
		default:
			m.Running = now.After(m.runs)
		}
	}
}

// launch launches a machine with marks.
func (c *Cloud) launch(zone string, marks ...string) probe.Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.launched++
	id := fmt.Sprintf("m-%06d", c.launched)
	m := &vm{Machine: probe.Machine{ID: id, ProviderID: "standin:///" + id, FailureDomain: zone, Marks: marks}, runs: time.Now().Add(c.Start)}
	c.machines[id] = m
	return m.Machine
}

// with returns the machines that have a mark.
func (c *Cloud) with(mark string) []probe.Machine {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.settle()
	var found []probe.Machine
	for _, m := range c.machines {
		if slices.Contains(m.Marks, mark) {
			found = append(found, m.Machine)
		}
	}
	slices.SortFunc(found, func(a, b probe.Machine) int { return cmp.Compare(a.ID, b.ID) })
	return found
}

// end terminates machines; it is idempotent.
func (c *Cloud) end(machines []probe.Machine) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, m := range machines {
		if known := c.machines[m.ID]; known != nil && known.ends.IsZero() {
			known.ends = time.Now().Add(c.End)
		}
	}
}
