package outcome

import (
	"maps"
	"sync"
	"time"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
)

const (
	// minConflictRetry is how soon a reconcile is repeated whose write was based on an outdated read. The watch usually brings the newer
	// object sooner.
	minConflictRetry = 500 * time.Millisecond
	// maxConflictRetry is the longest pause, when race after race is lost, as to another controller that writes without end. It is also how
	// late an object may be reconciled after the last race, if nothing else wakes it.
	maxConflictRetry = 10 * time.Second
	// races is how many may be lost in a row before the pauses grow: in its first seconds an object is written by several controllers.
	races = 3
)

// Retries are the conflicts that the reconciles of one controller have met in a row. The zero value is ready for use, also by several
// workers.
type Retries struct {
	// Clock has the time; the real one when nil.
	Clock clock.PassiveClock

	mutex sync.Mutex
	of    map[ctrl.Request]conflicts
	// swept is when outdated entries were dropped the last time.
	swept time.Time
}

// conflicts are those of one object: how many in a row, and when the last one was.
type conflicts struct {
	count int
	at    time.Time
}

// Result is Outcome.Result for a reconcile of that request, with pauses that double from the third conflict in a row on.
func (r *Retries) Result(request ctrl.Request, o Outcome) (ctrl.Result, error) {
	if !o.onlyConflicts() {
		r.mutex.Lock()
		defer r.mutex.Unlock()
		delete(r.of, request)
		return o.Result()
	}
	return ctrl.Result{RequeueAfter: earliest(o.after, r.pause(request))}, nil
}

// pause counts a conflict, and returns after what time the reconcile is repeated.
func (r *Retries) pause(request ctrl.Request) time.Duration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	now := r.now()
	if r.of == nil {
		r.of, r.swept = map[ctrl.Request]conflicts{}, now
	}
	over := func(c conflicts) bool { return now.Sub(c.at) >= 2*maxConflictRetry }
	if now.Sub(r.swept) >= 2*maxConflictRetry {
		// An object that no longer exists has no other result that would drop its entry.
		maps.DeleteFunc(r.of, func(_ ctrl.Request, c conflicts) bool { return over(c) })
		r.swept = now
	}
	met := r.of[request]
	if over(met) {
		met.count = 0
	}
	met.count, met.at = met.count+1, now
	r.of[request] = met
	pause := minConflictRetry
	for i := races; i < met.count && pause < maxConflictRetry; i++ {
		pause *= 2
	}
	return min(pause, maxConflictRetry)
}

func (r *Retries) now() time.Time {
	if r.Clock == nil {
		return time.Now()
	}
	return r.Clock.Now()
}
