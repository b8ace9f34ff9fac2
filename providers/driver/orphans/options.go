package orphans

import (
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// Policy is what becomes of orphans.
type Policy string

const (
	// PolicyDelete has them deleted.
	PolicyDelete Policy = "delete"
	// PolicyReport has them reported and nothing else.
	PolicyReport Policy = "report"
)

// DefaultPeriod is the time between two scans: that of Gardener's machine-controller-manager.
const DefaultPeriod = 15 * time.Minute

// Least times, as texts that the linker can set (-X): chaos runs, which last for seconds, are built with others. No flag and no environment
// of a program that was built without that makes them shorter.
var (
	leastPeriod = "1m"
	leastGrace  = "5m"
)

// MinPeriod is the least time between two scans.
func MinPeriod() time.Duration { return least(leastPeriod, time.Minute) }

// minGrace is the least age at which something that no object claims means anything.
func minGrace() time.Duration { return least(leastGrace, 5*time.Minute) }

func least(text string, usual time.Duration) time.Duration {
	if d, err := time.ParseDuration(text); err == nil && d > 0 {
		return d
	}
	return usual
}

// maxDeletions is how many orphans of a Cluster are deleted in one scan, so that a mistake can be seen before it is complete.
const maxDeletions = 10

// Options of a Collector.
type Options struct {
	// Policy is what becomes of orphans. Default: PolicyDelete.
	Policy Policy
	// Period is the time between two scans; zero turns all of it off, lineages included.
	Period time.Duration
	// Namespace is the one whose objects are looked at; all if it is empty.
	Namespace string
	// Record is the name of the ConfigMap that holds the Record. There is one for each lease.
	Record types.NamespacedName
}

// On returns whether orphans are looked for.
func (o Options) On() bool { return o.Period > 0 }
