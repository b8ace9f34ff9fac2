package measure

import (
	"strings"
	"time"
)

// Sample is what is known about a core at one moment.
type Sample struct {
	// Time is when the sample was taken.
	Time time.Time
	// Counters are the core's own.
	Counters Counters
	// Process is the kernel's account.
	Process Process
	// ByResource are the API server's counts by verb and resource.
	ByResource map[string]int
}

// Cost is what a core spent between two samples.
type Cost struct {
	// Counters are the core's own counts.
	Counters Counters
	// CPU is the time that the process ran.
	CPU time.Duration
	// PeakRSS is the peak of resident memory in bytes within the interval, when the kernel allowed to
	// reset it at its beginning.
	PeakRSS int64
	// ByResource are the requests by verb and resource.
	ByResource map[string]int
}

// Since is the cost between an earlier sample of the same process and this one.
func (s Sample) Since(earlier Sample) Cost {
	return Cost{
		Counters:   s.Counters.Sub(earlier.Counters),
		CPU:        s.Process.CPU - earlier.Process.CPU,
		PeakRSS:    s.Process.PeakRSS,
		ByResource: subtract(s.ByResource, earlier.ByResource),
	}
}

// Requests are all API requests but the health probes of target clusters.
func (c Cost) Requests() int {
	sum := -c.Counters.Probes
	for _, n := range c.Counters.Requests {
		sum += n
	}
	return sum
}

// Writes are the requests that change something.
func (c Cost) Writes() int {
	sum := 0
	for method, n := range c.Counters.Requests {
		if method != "GET" && method != "HEAD" {
			sum += n
		}
	}
	return sum
}

// Watches are the watches among the requests. API servers end each watch after some minutes, and a
// client opens it anew: outside of a start they are the clock's doing, not the load's.
func (c Cost) Watches() int {
	sum := 0
	for name, n := range c.ByResource {
		if strings.HasPrefix(name, WatchVerb) {
			sum += n
		}
	}
	return sum
}

// Reconciles are those of all controllers but the one that runs the health probes.
func (c Cost) Reconciles() int {
	sum := 0
	for controller, n := range c.Counters.Reconciles {
		if controller != ProbeController {
			sum += n
		}
	}
	return sum
}
