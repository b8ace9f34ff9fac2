package persist

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// staleFor is how long an object may be held back at most. A cache catches up within moments; one that never does,
// as after the API server was restored from a backup with lower versions, must not hold the object for ever.
const staleFor = 30 * time.Second

// Versions remembers the version that each object had after the last own write, so that a reconcile does not
// work on a cache that has not caught up: it would compute the same changes again and get a conflict.
// The zero value is ready for use, also by several goroutines.
type Versions struct {
	// Clock tells the time; the real one when nil.
	Clock clock.PassiveClock

	written sync.Map // types.UID -> write
}

// write is an own write.
type write struct {
	version string
	at      time.Time
}

// Wrote remembers the object as the server returned it.
func (v *Versions) Wrote(obj client.Object) {
	v.written.Store(obj.GetUID(), write{version: obj.GetResourceVersion(), at: v.now()})
}

// Stale says whether the object was read from a cache that is older than the last own write.
// Once the cache has caught up, or has had half a minute for it, the version is forgotten.
func (v *Versions) Stale(obj client.Object) bool {
	found, ok := v.written.Load(obj.GetUID())
	if !ok {
		return false
	}
	last := found.(write)
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), last.version)
	if err == nil && order < 0 && v.now().Sub(last.at) < staleFor {
		return true
	}
	v.written.CompareAndDelete(obj.GetUID(), found)
	return false
}

// Forget drops what is remembered of an object that is gone.
func (v *Versions) Forget(uid types.UID) { v.written.Delete(uid) }

func (v *Versions) now() time.Time {
	if v.Clock == nil {
		return time.Now()
	}
	return v.Clock.Now()
}
