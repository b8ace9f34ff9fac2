package inframachine

import (
	"time"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/batch"
)

// Options of a Reconciler; zero values mean the defaults.
type Options struct {
	// VisibilityGrace is how long after a launch the cloud may fail to list the instance before its
	// absence counts. Default: 5 minutes.
	VisibilityGrace time.Duration
	// CallTimeout limits each call to the cloud. Default: 30 seconds.
	CallTimeout time.Duration
	// Backoff returns the time to wait after the n-th failure of a class in a row, before jitter.
	// Default: DefaultBackoff.
	Backoff func(class driver.Class, n int) time.Duration
	// Batch configures how the requests of many objects to the cloud are gathered: those that terminate
	// instances and look for dependants. Defaults: batch.DefaultOptions. Clock and Backoff are set by the Reconciler.
	Batch batch.Options
	// WatchFilter, when not empty, selects the objects whose label cluster.x-k8s.io/watch-filter has
	// this value.
	WatchFilter string
	// Concurrency is the number of objects that are reconciled at a time. A quarter of them may call the cloud in one scope, so
	// that one that does not answer delays no other. Default: 40.
	Concurrency int
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{
		VisibilityGrace: 5 * time.Minute,
		CallTimeout:     30 * time.Second,
		Backoff:         DefaultBackoff,
		Concurrency:     40,
	}
}

func (o Options) withDefaults() Options {
	defaults := DefaultOptions()
	if o.VisibilityGrace == 0 {
		o.VisibilityGrace = defaults.VisibilityGrace
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaults.CallTimeout
	}
	if o.Backoff == nil {
		o.Backoff = defaults.Backoff
	}
	if o.Concurrency == 0 {
		o.Concurrency = defaults.Concurrency
	}
	return o
}
