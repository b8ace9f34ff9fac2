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
	// ByResource are the API server's counts by verb and resource, over all processes of the run.
	ByResource map[string]int
}

// Cost is what a core used between two samples.
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

// Activity is constant exactly while a core only probes. Only its changes mean something.
func (s Sample) Activity() int {
	return s.Counters.AllRequests() - s.ByResource[probe] + s.Counters.AllReconciles()
}

// Requests are all API requests but the health probes of the target cluster.
func (c Cost) Requests() int { return c.Counters.AllRequests() - c.Probes() }

// Probes are the health probes of the target cluster, as the API server counted them.
func (c Cost) Probes() int { return c.ByResource[probe] }

// Writes are the requests that change something.
func (c Cost) Writes() int {
	return sum(c.Counters.Requests, func(method string) bool { return method != "GET" && method != "HEAD" })
}

// Watches are the watches among the requests. An API server ends each watch after some minutes, and a
// client opens it again: outside of a start they are the clock's doing, not the load's.
func (c Cost) Watches() int {
	return sum(c.ByResource, func(name string) bool { return strings.HasPrefix(name, watchVerb) })
}

// Probes are the health probes of the target cluster since the beginning of the run.
func (s Sample) Probes() int { return s.ByResource[probe] }
