package remediation

import (
	"fmt"
	"time"
)

// Result is what becomes of a candidate.
type Result struct {
	Candidate
	// Record is what the replacement is to have.
	Record Record
	// Fresh means that it takes a place that was free.
	Fresh bool
	// First means that it is to be recorded, and that no attempt to is known: its Slot can be released if nothing comes of this one.
	First bool
	// Blocker is zero when the Machine may be replaced.
	Blocker Blocker
}

// Allowed reports whether the Machine may be replaced now.
func (v Result) Allowed() bool { return v.Blocker.Reason == "" }

// Decision is the outcome for all candidates, in their order.
type Decision struct {
	Results []Result
	// InFlight is how many places of the MachineDeployment are taken, those included that are granted now; InCluster of the Cluster.
	InFlight, InCluster int
	// Next is when to decide again, without an event; zero for never.
	Next time.Time
}

// Numbers describes the decision for a condition: how many are unhealthy and what is in flight.
func (d Decision) Numbers(unhealthy int) string {
	return fmt.Sprintf("%d unhealthy; in flight: %d of the MachineDeployment or MachineSet, %d of the Cluster", unhealthy, d.InFlight, d.InCluster)
}
