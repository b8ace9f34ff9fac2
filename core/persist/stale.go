package persist

import (
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Versions remembers the version that each object had after the last own write, so that a reconcile does not
// work on a cache that has not caught up: it would compute the same changes again and get a conflict.
// The zero value is ready for use, also by several goroutines.
type Versions struct {
	written sync.Map // types.UID -> resource version
}

// Wrote remembers the object as the server returned it.
func (v *Versions) Wrote(obj client.Object) {
	v.written.Store(obj.GetUID(), obj.GetResourceVersion())
}

// Stale says whether the object was read from a cache that is older than the last own write.
// Once the cache has caught up the version is forgotten.
func (v *Versions) Stale(obj client.Object) bool {
	written, ok := v.written.Load(obj.GetUID())
	if !ok {
		return false
	}
	order, err := resourceversion.CompareResourceVersion(obj.GetResourceVersion(), written.(string))
	if err == nil && order < 0 {
		return true
	}
	v.written.CompareAndDelete(obj.GetUID(), written)
	return false
}

// Forget drops what is remembered of an object that is gone.
func (v *Versions) Forget(uid types.UID) { v.written.Delete(uid) }
