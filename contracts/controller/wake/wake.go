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
type Waker struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	pending map[types.NamespacedName]struct{}
}

// New returns a Waker.
func New() *Waker {
	return &Waker{pending: map[types.NamespacedName]struct{}{}}
}

// Enqueue has the object reconciled. It does not block.
func (w *Waker) Enqueue(key types.NamespacedName) { w.EnqueueAfter(key, 0) }

// EnqueueAfter has the object reconciled after a while. It does not block; before the controller has started the time does not
// count.
func (w *Waker) EnqueueAfter(key types.NamespacedName, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.pending[key] = struct{}{}
		return
	}
	w.queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
}

// Source feeds a controller with what is enqueued.
func (w *Waker) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.queue = queue
		for key := range w.pending {
			queue.Add(reconcile.Request{NamespacedName: key})
		}
		clear(w.pending)
		return nil
	})
}
