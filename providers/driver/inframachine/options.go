package inframachine

import (
	"math/rand/v2"
	"time"

	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/batch"
	"millwright.dev/providers/driver/orphans"
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
	// Batch configures how the requests of many objects to the cloud are gathered: those that terminate instances, clean up
	// after them and read operations. Defaults: batch.DefaultOptions. Clock, Backoff, Size
	// and Random are set by the Reconciler.
	Batch batch.Options
	// ListFast and ListSlow are the times between two lists of the cloud's instances: while a machine waits for a change, and
	// otherwise. Defaults: those of the driver's traits.
	ListFast, ListSlow time.Duration
	// StatusInterval is the time between two lists of what the other lists leave out, if the driver has such. Default: that of the driver's
	// traits.
	StatusInterval time.Duration
	// UnreachableAfter is for how long lists have to fail before machines report it. Default: inventory.DefaultUnreachableAfter.
	UnreachableAfter time.Duration
	// Launches, if it is set, is the rate of launches instead of that of the driver's traits.
	Launches *driver.Rate
	// Random returns a random time below another one, by which waits are spread. Default: rand.N. A simulation that has to repeat itself
	// sets it.
	Random func(below time.Duration) time.Duration
	// Orphans are the options of the collector of orphans. Default: none are looked for.
	Orphans orphans.Options
	// WatchFilter restricts the controller to objects with this value of the watch label; "" is all. It is here, and not a field of the
	// Reconciler as elsewhere, since the author of a provider takes all options at once: --watch-filter must not lack its effect by one
	// line that is forgotten.
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

func (o Options) withDefaults(traits driver.Traits) Options {
	defaults := DefaultOptions()
	if o.ListFast == 0 {
		o.ListFast = traits.ListFast
	}
	if o.ListSlow == 0 {
		o.ListSlow = traits.ListSlow
	}
	if o.StatusInterval == 0 {
		o.StatusInterval = traits.StatusInterval
	}
	o.Batch.Size = traits.BatchSize
	if o.VisibilityGrace == 0 {
		o.VisibilityGrace = defaults.VisibilityGrace
	}
	if o.CallTimeout == 0 {
		o.CallTimeout = defaults.CallTimeout
	}
	if o.Backoff == nil {
		o.Backoff = defaults.Backoff
	}
	if o.Random == nil {
		o.Random = rand.N[time.Duration]
	}
	o.Batch.Random = o.Random
	if o.Concurrency == 0 {
		o.Concurrency = defaults.Concurrency
	}
	return o
}
