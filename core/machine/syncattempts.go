package machine

import (
	"crypto/sha256"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"millwright.dev/contracts/controller/persist"
)

const (
	// minSyncRetry and maxSyncRetry bound the pause between two attempts at the same change of a Node. It doubles.
	minSyncRetry, maxSyncRetry = time.Second, 2 * time.Minute
	// quietSyncFailures is how many lost races in a row are ordinary, as while a kubelet starts: they mean nothing
	// about the Node, are repeated soon, and are not reported.
	quietSyncFailures = 4
	// syncRaceRetry is the pause after a lost race. The cache is behind, and what it lacks may be a heartbeat, which is
	// no event.
	syncRaceRetry = 200 * time.Millisecond
)

// syncAttempts remembers the changes of Nodes that failed, so that each is tried again less and less often, whatever
// enqueues the Machine. Another change is tried soon. The zero value is ready for use.
type syncAttempts struct {
	mutex  sync.Mutex
	failed map[types.NamespacedName]*syncAttempt
}

// syncAttempt is what is known of a change that failed.
type syncAttempt struct {
	machine types.UID
	change  [sha256.Size]byte
	// races and refusals count the failures in a row.
	races, refusals int
	err             error
	at, next        time.Time
}

// tooEarly returns the attempt that failed if it is too early for another one, nil otherwise. For another change that
// is a moment at most: what a webhook makes of a change may be another one each time.
func (a *syncAttempts) tooEarly(key types.NamespacedName, machine types.UID, change [sha256.Size]byte, now time.Time) *syncAttempt {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	attempt := a.failed[key]
	if attempt == nil || attempt.machine != machine {
		return nil
	}
	found := *attempt
	if soon := attempt.at.Add(minSyncRetry); attempt.change != change && soon.Before(found.next) {
		found.next = soon
	}
	if !now.Before(found.next) {
		return nil
	}
	return &found
}

// fail remembers that a change failed.
func (a *syncAttempts) fail(key types.NamespacedName, machine types.UID, change [sha256.Size]byte, err error, now time.Time) syncAttempt {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if a.failed == nil {
		a.failed = map[types.NamespacedName]*syncAttempt{}
	}
	attempt := a.failed[key]
	if attempt == nil || attempt.machine != machine {
		attempt = &syncAttempt{machine: machine}
		a.failed[key] = attempt
	}
	attempt.change, attempt.err, attempt.at = change, err, now
	if persist.LostRace(err) {
		attempt.races++
	} else {
		attempt.refusals++
	}
	attempt.next = now.Add(attempt.pause())
	return *attempt
}

// quiet reports whether the failure is a race that is not worth reporting yet.
func (a *syncAttempt) quiet() bool { return a.refusals == 0 && a.races <= quietSyncFailures }

// pause is how long to wait until the next attempt.
func (a *syncAttempt) pause() time.Duration {
	if a.quiet() {
		return syncRaceRetry
	}
	pause := minSyncRetry
	for range max(a.refusals, a.races-quietSyncFailures) - 1 {
		if pause *= 2; pause >= maxSyncRetry {
			return maxSyncRetry
		}
	}
	return pause
}

// forget drops what is known of a Machine whose Node is synchronized, or that no longer exists.
func (a *syncAttempts) forget(key types.NamespacedName) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.failed, key)
}
