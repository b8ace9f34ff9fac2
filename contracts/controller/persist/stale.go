package persist

import (
	"maps"
	"net/http"
	"sync"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
)

const (
	// staleFor is how long an object may be held back at most. A cache catches up within moments; one that never
	// does, as after the API server was restored from a backup with lower versions, must not hold the object for ever.
	staleFor = 30 * time.Second
	// unclearFor is how long a write is remembered at least whose answer was lost, or that the cache does not show. An object may have ended
	// before that is taken in, and no event drops what is remembered of it then.
	unclearFor = time.Hour
	// atOnce is the wait for a cache that has caught up since the object was read from it.
	atOnce = time.Millisecond
)

// Versions remembers the version that each object had after the last own write, so that a reconcile does not
// work on a cache that has not caught up: it would compute the same changes again and get a conflict.
// A reconcile that Behind turns away is woken by the event of the write, which the predicate Awaited lets pass; both are for one
// controller, others that read the objects use Lag. So is the event of
// a write whose answer was lost: a reconcile between the two finds in the cache what it computes, and has nothing to write.
// The zero value is ready for use, also by several goroutines.
type Versions struct {
	// Clock has the time; the real one when nil.
	Clock clock.PassiveClock

	mutex   sync.Mutex
	written map[types.UID]*write
	// unclear has objects of which it is not known whether a write took effect.
	unclear map[types.UID]unclearWrite
	// swept is when own writes that count no more were dropped the last time, unclearSwept when those without an answer were.
	swept, unclearSwept time.Time
}

// unclearWrite is a write of which it is not known whether it took effect.
type unclearWrite struct {
	// before is the version that the object had.
	before string
	at     time.Time
}

// write is an own write.
type write struct {
	version string
	at      time.Time
	// seen is true when events have shown this version, or a newer one.
	seen bool
	// awaited is true when a reconcile waits for the event of the write.
	awaited bool
	// last is true when the write was the end of the object.
	last bool
}

// Wrote remembers the object as the server returned it.
func (v *Versions) Wrote(obj client.Object) {
	v.remember(obj.GetUID(), &write{version: obj.GetResourceVersion(), at: v.now()})
}

// Failed takes in that a write of the object, as it was before, failed. If it may have taken effect all the same, each newer version
// triggers a reconcile until a write succeeds.
func (v *Versions) Failed(before client.Object, err error) {
	if !mayHaveTakenEffect(err) {
		return
	}
	v.mutex.Lock()
	defer v.mutex.Unlock()
	v.markUnclear(before)
}

func (v *Versions) markUnclear(before client.Object) {
	now := v.now()
	if v.unclear == nil {
		v.unclear, v.unclearSwept = map[types.UID]unclearWrite{}, now
	}
	if now.Sub(v.unclearSwept) >= unclearFor {
		maps.DeleteFunc(v.unclear, func(_ types.UID, old unclearWrite) bool { return now.Sub(old.at) >= unclearFor })
		v.unclearSwept = now
	}
	v.unclear[before.GetUID()] = unclearWrite{before: before.GetResourceVersion(), at: now}
}

// mayHaveTakenEffect is false for what the API server has answered that it did not do: such answers are the client's fault, by their code.
func mayHaveTakenEffect(err error) bool {
	var answer apierrors.APIStatus
	if !errors.As(err, &answer) {
		return err != nil
	}
	code := answer.Status().Code
	return code < http.StatusBadRequest || code >= http.StatusInternalServerError
}

// Released remembers that the last finalizer of an object was removed: nothing is to be done for it any more, and
// its end comes as an event. The version that the server returns for that write is the one before it.
func (v *Versions) Released(obj client.Object) {
	v.remember(obj.GetUID(), &write{at: v.now(), last: true})
}

func (v *Versions) remember(uid types.UID, own *write) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	if v.written == nil {
		v.written = map[types.UID]*write{}
	}
	if now := v.now(); now.Sub(v.swept) >= staleFor {
		maps.DeleteFunc(v.written, func(_ types.UID, old *write) bool { return old.over(now) })
		v.swept = now
	}
	if before := v.written[uid]; before != nil {
		// A reconcile that waits for the write before, whose event is an outdated one now.
		own.awaited = before.awaited
	}
	v.written[uid] = own
	delete(v.unclear, uid)
}

// shownBy reports whether an object that was read from a cache has the write, or a later one.
func (w *write) shownBy(obj client.Object) bool {
	return !w.last && !older(obj.GetResourceVersion(), w.version)
}

// rest is for how long the cache is waited for; not positive when that is over.
func (w *write) rest(now time.Time) time.Duration { return w.at.Add(staleFor).Sub(now) }

// over reports whether a write need not be remembered any more: the cache has shown it, or does not come to that.
func (w *write) over(now time.Time) bool {
	age := now.Sub(w.at)
	return age >= unclearFor || (age >= staleFor && (w.seen || w.last))
}

// Behind reports whether the object was read from a cache that is older than the last own write, and for how long
// at most to wait: zero when it is not. Once the cache has caught up, or has had half a minute for it, the
// version is forgotten.
func (v *Versions) Behind(obj client.Object) time.Duration {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	own := v.written[obj.GetUID()]
	if own == nil {
		return 0
	}
	rest, caughtUp := own.rest(v.now()), own.shownBy(obj)
	if rest <= 0 || caughtUp {
		delete(v.written, obj.GetUID())
		if rest <= 0 && own.awaited {
			countExpired(obj)
		}
		if !caughtUp {
			v.markUnclear(obj) // What is done now is done by an old version.
		}
		return 0
	}
	if own.last {
		return rest
	}
	if own.seen {
		return atOnce
	}
	own.awaited = true
	return rest
}

// Lag is Behind for other controllers than that of the objects, whose own events bring them back: it takes no part in what wakes a
// reconcile that Behind has turned away. A controller that saw the version first would otherwise take the event from that reconcile.
func (v *Versions) Lag(obj client.Object) time.Duration {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	own := v.written[obj.GetUID()]
	if own == nil || own.shownBy(obj) {
		return 0
	}
	return max(0, own.rest(v.now()))
}

// Awaited is a predicate for the events of the objects themselves. Of updates it lets pass those, and only those,
// that a reconcile was turned away for, or that a write may have made whose answer was lost; it is meant to be joined by
// predicate.Or, as the first, with one that keeps own writes out. What is remembered of an object goes when the object does.
func (v *Versions) Awaited() predicate.Predicate {
	return predicate.Funcs{
		CreateFunc:  func(event.CreateEvent) bool { return false },
		GenericFunc: func(event.GenericEvent) bool { return false },
		UpdateFunc:  func(e event.UpdateEvent) bool { return v.saw(e.ObjectNew) },
		DeleteFunc: func(e event.DeleteEvent) bool {
			v.Forget(e.Object.GetUID())
			return false
		},
	}
}

// saw notes the version that the cache has now, and reports whether a reconcile waits for it.
func (v *Versions) saw(obj client.Object) bool {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	isUnclear := older(v.unclear[obj.GetUID()].before, obj.GetResourceVersion())
	own := v.written[obj.GetUID()]
	if own == nil || older(obj.GetResourceVersion(), own.version) {
		return isUnclear
	}
	own.seen = true
	awaited := own.awaited
	own.awaited = false
	return awaited || isUnclear
}

// Forget drops what is remembered of an object that no longer exists.
func (v *Versions) Forget(uid types.UID) {
	v.mutex.Lock()
	defer v.mutex.Unlock()
	delete(v.written, uid)
	delete(v.unclear, uid)
}

func (v *Versions) now() time.Time {
	if v.Clock == nil {
		return time.Now()
	}
	return v.Clock.Now()
}

// older is false for versions that cannot be compared, as one that is not known: they never hold anything up.
func older(version, than string) bool {
	order, err := resourceversion.CompareResourceVersion(version, than)
	return err == nil && order < 0
}
