package freeze

import (
	"fmt"
	"sync"
	"time"

	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// never is when a grace ends whose end is not known.
const never = 100 * 365 * 24 * time.Hour

// Targets knows which target clusters answer: core/remote does.
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
	// read reads a Cluster for what the previous core has reported of it; nil if nothing is to be recalled. The mutex is not held.
	read func(client.ObjectKey, *target)

	mutex   sync.Mutex
	control peer
	// notified is the reason of the latest state of the management cluster's API server that others were notified of.
	notified string
	jumps    jumps
	start    start
	// clusters are the target clusters that were asked about.
	clusters map[client.ObjectKey]*target
	// restored is why the whole management cluster seems to be restored.
	restored suspicion

	subscribers sync.RWMutex
	onChange    []func(client.ObjectKey)
}

// target is what is known of one target cluster.
type target struct {
	peer
	// examined is true once it was looked for signs of a restore.
	examined bool
	restored suspicion
	// known is since when a caller has asked about it, seen true once it has answered.
	known time.Time
	seen  bool
	// counted means that the Cluster exists and has had a control plane, so that it is in the metric.
	counted bool
	// dismissal is when a user last said that what had begun before is over.
	dismissal time.Time
	// recalled means that it did not answer, or had not for long, when the previous core ended: the grace begins with its first answer.
	recalled bool
	// unread means that it is not known yet what the previous core has reported, reading that it is being read.
	unread, reading bool
	// later means that the Cluster was created after this process has started, young that it was less than the timeout before a caller asked.
	later, young bool
	// before is what the previous core has reported of a time without a core, if it ended within the grace; nil for nothing.
	before *start
}

// observe takes in since when the API server has not answered; the zero time for that it does. Before its first answer it counts from
// when a caller has asked first: nothing knew of it before.
func (t *target) observe(now time.Time, timeout time.Duration, since time.Time, why string) {
	switch {
	case since.IsZero():
		t.answered(now, timeout)
		if t.recalled && !t.seen {
			t.recovered = now
		}
		t.seen = true
	case !t.seen && since.Before(t.known):
		t.failed(t.known, why)
	default:
		t.failed(since, why)
	}
}

// outage is the state that follows from how the API server answers. For how long it has not answered is not known before it has answered
// this process once, unless the Cluster was created just before a caller asked.
func (t *target) outage(now time.Time, o Options) State {
	state := t.state(now, o)
	if t.failing.IsZero() || t.seen || t.young || state.Reason == t.reason {
		return state
	}
	return State{Reason: t.reason, Since: t.failing, Until: t.failing.Add(o.Timeout), Unread: true, Message: fmt.Sprintf(
		"No Machine is replaced: the API server of the %s has not answered since this core began to ask at %s: %s", t.name, stamp(t.failing), t.why)}
}

// dismissed reports whether a user has said that a state is over. An API server that does not answer stays one.
func (t *target) dismissed(state State) bool {
	outage := state.Reason == ControlAPIServerUnreachableReason || state.Reason == TargetAPIServerUnreachableReason
	return !outage && !state.Since.After(t.dismissal)
}

// New returns a Freezer for a process that has just started, at which nothing is known yet of the cores before it.
func New(options Options, clk clock.PassiveClock, targets Targets) *Freezer {
	now := clk.Now()
	f := &Freezer{
		options: options, clock: clk, targets: targets,
		control:  peer{reason: ControlAPIServerUnreachableReason, name: "management cluster"},
		jumps:    newJumps(now),
		start:    start{at: now},
		clusters: map[client.ObjectKey]*target{},
	}
	targets.OnConnectivity(func(cluster client.ObjectKey) {
		f.Frozen(cluster)
		f.changed(cluster)
	})
	return f
}

// Frozen returns the state of a Cluster: the first of the reasons, in the order of how far they reach and how long they last.
func (f *Freezer) Frozen(cluster client.ObjectKey) State {
	since, why := f.targets.Unanswered(cluster)
	of := f.begin(cluster)
	f.mutex.Lock()
	defer f.mutex.Unlock()
	now := f.clock.Now()
	f.jumps.observe(now)
	of.observe(now, f.options.Timeout, since, why)
	return f.stateOf(of, now)
}

// stateOf returns the first state that holds. The mutex is held.
func (f *Freezer) stateOf(of *target, now time.Time) State {
	if of.unread {
		return State{Reason: CoreWasAwayReason, Since: f.start.at, Unread: true, Message: "No Machine is replaced until the state that " +
			"the previous core has recorded on the Cluster has been read"}
	}
	var next time.Time
	for _, state := range []State{
		f.control.state(now, f.options), of.outage(now, f.options), f.restored.state(now, f.options.RestoreGrace),
		of.restored.state(now, f.options.RestoreGrace), f.jumps.state(now, f.options.Grace), f.startOf(of).state(now, f.options, of.examined),
	} {
		if state.Active() {
			if of.dismissed(state) {
				continue
			}
			return state
		}
		if next.IsZero() || !state.Next.IsZero() && state.Next.Before(next) {
			next = state.Next
		}
	}
	return State{Next: next}
}

// NotBefore returns the end of the latest grace.
func (f *Freezer) NotBefore(cluster client.ObjectKey) time.Time {
	if state := f.Frozen(cluster); state.Active() {
		if state.Until.IsZero() || state.Unread {
			return f.clock.Now().Add(never)
		}
		return state.Until
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	of := f.cluster(cluster)
	var latest time.Time
	for _, begun := range []time.Time{f.control.recovered, of.recovered, f.jumps.at, f.startOf(of).resumed(f.options.Timeout)} {
		if end := begun.Add(f.options.Grace); !begun.IsZero() && end.After(latest) {
			latest = end
		}
	}
	// When a user dismisses a grace, Nodes are judged from then on.
	if latest.After(of.dismissal) && !of.dismissal.IsZero() && latest.After(f.clock.Now()) {
		return of.dismissal
	}
	return latest
}

// Dismiss ends what ends by itself, for a Cluster: graces, and the suspicion of a restore. An API server that does not answer stays
// one. Anyone who may write the Cluster may do that, by an annotation.
func (f *Freezer) Dismiss(cluster client.ObjectKey) {
	frozen := f.Frozen(cluster).Active()
	f.mutex.Lock()
	f.cluster(cluster).dismissal = f.clock.Now()
	f.mutex.Unlock()
	if frozen {
		f.changed(cluster)
	}
}

// Count has a Cluster in the metric until it is forgotten. Callers may ask about others that are gone, or do not exist yet.
func (f *Freezer) Count(cluster client.ObjectKey) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.cluster(cluster).counted = true
}

// Forget drops what is known of a Cluster that no longer exists.
func (f *Freezer) Forget(cluster client.ObjectKey) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	delete(f.clusters, cluster)
}

// OnChange has f called when a state begins or ends other than by time.
func (f *Freezer) OnChange(changed func(client.ObjectKey)) {
	f.subscribers.Lock()
	defer f.subscribers.Unlock()
	f.onChange = append(f.onChange, changed)
}

// changed calls the subscribers, for all Clusters if the key has no name.
func (f *Freezer) changed(cluster client.ObjectKey) {
	f.subscribers.RLock()
	defer f.subscribers.RUnlock()
	for _, notify := range f.onChange {
		notify(cluster)
	}
}

// cluster returns what is known of a Cluster. The mutex is held.
func (f *Freezer) cluster(key client.ObjectKey) *target {
	found := f.clusters[key]
	if found == nil {
		found = &target{
			peer:   peer{reason: TargetAPIServerUnreachableReason, name: "target cluster"},
			known:  f.clock.Now(),
			unread: f.read != nil,
		}
		f.clusters[key] = found
	}
	return found
}
