package machinedeployment

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// How soon a deployment is requeued whose sets have counted other Machines than the cache shows: the delay is how long that
// has been so, within these limits.
const (
	minAhead = time.Second
	maxAhead = time.Minute
)

// ahead remembers since when the status of a set counts other Machines than the cache shows. The zero value is ready for
// use.
type ahead struct {
	mu    sync.Mutex
	since map[types.UID]time.Time
}

// wait is how soon to look again.
func (a *ahead) wait(deployment types.UID, now time.Time) time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.since == nil {
		a.since = map[types.UID]time.Time{}
	}
	since, ok := a.since[deployment]
	if !ok {
		since = now
		a.since[deployment] = now
	}
	return min(max(now.Sub(since), minAhead), maxAhead)
}

// forget drops a deployment whose sets agree with the cache, or that goes.
func (a *ahead) forget(deployment types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.since, deployment)
}

// awaitCache requeues the deployment while a set has counted other Machines than were read. The set may be
// ahead: it counts what it has created before the cache shows it, and a process that has ended may have seen more than this
// one. When the cache catches up the set has nothing to add, so that nothing else would enqueue the deployment.
func (r *Reconciler) awaitCache(s *scope) outcome.Outcome {
	if !s.read || agree(s) {
		r.ahead.forget(s.deployment.UID)
		return outcome.Continue()
	}
	return outcome.ContinueAfter(r.ahead.wait(s.deployment.UID, s.Now))
}

// agree reports whether the sets have counted the Machines that were read. One that has not observed its generation yet
// will write its status again, which enqueues the deployment.
func agree(s *scope) bool {
	for _, set := range s.sets {
		if looked(set) && !machines.Counted(set, s.machines[set.UID]) {
			return false
		}
	}
	return true
}

// looked reports whether a set has observed its present generation.
func looked(set *clusterv1.MachineSet) bool { return set.Status.ObservedGeneration == set.Generation }
