package freeze

import (
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// UnfreezeAnnotation on a Cluster, with any value, ends the grace after an outage. The core removes it once it has done so.
const UnfreezeAnnotation = "safety.millwright.dev/unfreeze"

// Targets knows which target clusters answer; Connected implements it.
type Targets interface {
	// Unanswered returns since when the API server of a target cluster has not answered, and why; the zero time while it answers.
	Unanswered(cluster client.ObjectKey) (since time.Time, why string)
	// OnConnectivity has f called when that may have changed.
	OnConnectivity(f func(cluster client.ObjectKey))
}

// Freezer is the Source of a running core. Create it with New.
type Freezer struct {
	options Options
	clock   clock.PassiveClock
	targets Targets

	mutex    sync.Mutex
	clusters map[client.ObjectKey]*cluster
	onChange []func(client.ObjectKey)
}

// cluster is what is known of one Cluster.
type cluster struct {
	history
	// counted means that the Cluster exists and has had a control plane, so that the metric counts it.
	counted bool
}

// New returns a Freezer for a process that has just started.
func New(options Options, clk clock.PassiveClock, targets Targets) *Freezer {
	f := &Freezer{options: options, clock: clk, targets: targets, clusters: map[client.ObjectKey]*cluster{}}
	targets.OnConnectivity(func(key client.ObjectKey) {
		f.Frozen(key)
		f.changed(key)
	})
	return f
}

// Frozen returns the state of a Cluster.
func (f *Freezer) Frozen(key client.ObjectKey) State {
	h, now := f.observe(key)
	return decide(h, now, f.options)
}

// NotBefore returns the end of the latest grace of a Cluster.
func (f *Freezer) NotBefore(key client.ObjectKey) time.Time {
	h, now := f.observe(key)
	return notBefore(h, now, f.options)
}

// observe records whether the API server of a Cluster answers.
func (f *Freezer) observe(key client.ObjectKey) (history, time.Time) {
	since, why := f.targets.Unanswered(key)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	known, now := f.known(key), f.clock.Now()
	known.history = known.observe(now, since, why, f.options)
	return known.history, now
}

// known returns what is known of a Cluster. The mutex is held.
func (f *Freezer) known(key client.ObjectKey) *cluster {
	found := f.clusters[key]
	if found == nil {
		found = &cluster{history: history{asked: f.clock.Now()}}
		f.clusters[key] = found
	}
	return found
}

// Dismiss ends the grace of a Cluster. An API server that does not answer stays one. Anyone who may write the Cluster may do that, by
// UnfreezeAnnotation.
func (f *Freezer) Dismiss(key client.ObjectKey) {
	if f.Frozen(key).Reason != RecoveringReason {
		return
	}
	f.mutex.Lock()
	f.known(key).recovered = f.clock.Now().Add(-f.options.Grace)
	f.mutex.Unlock()
	f.changed(key)
}

// Count has the metric count a Cluster until it is forgotten. Callers may ask about others that do not exist any more, or not yet.
func (f *Freezer) Count(key client.ObjectKey) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.known(key).counted = true
}

// Forget drops what is known of a Cluster that no longer exists.
func (f *Freezer) Forget(key client.ObjectKey) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.clusters, key)
}

// OnChange has f called when a state begins or ends other than by time.
func (f *Freezer) OnChange(changed func(client.ObjectKey)) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.onChange = append(f.onChange, changed)
}

// changed calls the subscribers.
func (f *Freezer) changed(key client.ObjectKey) {
	f.mutex.Lock()
	subscribers := f.onChange
	f.mutex.Unlock()
	for _, notify := range subscribers {
		notify(key)
	}
}
