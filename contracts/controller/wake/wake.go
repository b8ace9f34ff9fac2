// Package wake puts objects into a controller's queue when something has changed that no watch shows.
package wake

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// Waker enqueues objects in one controller. Those that come before the controller has started wait.
// The zero value is ready for use.
type Waker struct{ typed Typed[reconcile.Request] }

// New returns a Waker.
func New() *Waker { return &Waker{} }

// Enqueue enqueues the object. It does not block.
func (w *Waker) Enqueue(key types.NamespacedName) { w.EnqueueAfter(key, 0) }

// EnqueueAfter enqueues the object after a while. It does not block; before the controller has started the time does not
// count.
func (w *Waker) EnqueueAfter(key types.NamespacedName, after time.Duration) {
	w.typed.EnqueueAfter(reconcile.Request{NamespacedName: key}, after)
}

// Source feeds a controller with what is enqueued.
func (w *Waker) Source() source.Source { return w.typed.Source() }

// Typed is a Waker for a controller whose queue holds requests of type R. The zero value is ready for use.
type Typed[R comparable] struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[R]
	pending map[R]struct{}
}

// Enqueue enqueues the request. It does not block.
func (w *Typed[R]) Enqueue(request R) { w.EnqueueAfter(request, 0) }

// EnqueueAfter enqueues the request after a while. It does not block; before the controller has started the time does not
// count.
func (w *Typed[R]) EnqueueAfter(request R, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		if w.pending == nil {
			w.pending = map[R]struct{}{}
		}
		w.pending[request] = struct{}{}
		return
	}
	w.queue.AddAfter(request, after)
}

// Source feeds a controller with what is enqueued.
func (w *Typed[R]) Source() source.TypedSource[R] {
	return source.TypedFunc[R](func(_ context.Context, queue workqueue.TypedRateLimitingInterface[R]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		for request := range w.pending {
			queue.Add(request)
		}
		clear(w.pending)
		return nil
	})
}
