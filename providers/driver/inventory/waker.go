package inventory

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// waker puts machines into the reconciler's queue. What comes before the queue is there waits.
type waker struct {
	mu      sync.Mutex
	queue   workqueue.TypedRateLimitingInterface[reconcile.Request]
	pending map[types.NamespacedName]struct{}
}

func newWaker() *waker {
	return &waker{pending: map[types.NamespacedName]struct{}{}}
}

func (w *waker) enqueue(key types.NamespacedName) { w.enqueueAfter(key, 0) }

func (w *waker) enqueueAfter(key types.NamespacedName, after time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		w.pending[key] = struct{}{}
		return
	}
	w.queue.AddAfter(reconcile.Request{NamespacedName: key}, after)
}

// Wake has a machine reconciled.
func (i *Inventory) Wake(key types.NamespacedName) { i.wake.enqueue(key) }

// Source feeds a controller with the machines whose instance changed.
func (i *Inventory) Source() source.Source {
	return source.Func(func(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
		i.wake.mu.Lock()
		defer i.wake.mu.Unlock()
		i.wake.queue = queue
		for key := range i.wake.pending {
			queue.Add(reconcile.Request{NamespacedName: key})
		}
		clear(i.wake.pending)
		return nil
	})
}
