package drain

import (
	"context"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"
)

// collection is a copy of all objects of one kind in a target cluster. All drains of the cluster share its informer,
// which begins when the first of them needs it and ends with the last drain.
type collection[T runtime.Object] struct {
	// what names the kind in messages.
	what     string
	informer cache.SharedIndexInformer
	// affects reports whether a change concerns a drain, and may change the drain, under whose mu it is called. A new object has
	// no before, a deleted one no after.
	affects func(n *nodeDrain, before, after T) bool

	mu      sync.Mutex
	members map[*nodeDrain]bool
	// cancel ends the informer; nil before it begins.
	cancel context.CancelFunc
	err    string
}

// byKeys is the index of all collections.
const byKeys = "keys"

// newCollection prepares a collection. keys are what an object can be found by.
func newCollection[T runtime.Object](
	what string,
	example T,
	source func(report func(error)) *cache.ListWatch,
	keys func(T) []string,
	affects func(n *nodeDrain, before, after T) bool,
) *collection[T] {
	c := &collection[T]{what: what, affects: affects, members: map[*nodeDrain]bool{}}
	c.informer = cache.NewSharedIndexInformer(source(c.reported), example, 0, cache.Indexers{byKeys: func(obj any) ([]string, error) {
		return keys(obj.(T)), nil
	}})
	// Neither fails before the informer has begun.
	_ = c.informer.SetTransform(ctrlcache.TransformStripManagedFields())
	_, _ = c.informer.AddEventHandler(cache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(obj any, initial bool) {
			if after, ok := obj.(T); ok && !initial {
				c.changed(*new(T), after)
			}
		},
		UpdateFunc: func(before, after any) { c.changed(before.(T), after.(T)) },
		DeleteFunc: func(obj any) {
			if unknown, ok := obj.(cache.DeletedFinalStateUnknown); ok {
				obj = unknown.Obj
			}
			if before, ok := obj.(T); ok {
				c.changed(before, *new(T))
			}
		},
	})
	return c
}

// join makes a drain a member and starts the informer for the first one. It is called under the drain's mu.
func (c *collection[T]) join(n *nodeDrain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n.stopped {
		return
	}
	c.members[n] = true
	if c.cancel != nil {
		return
	}
	// The informer serves other drains too, so it does not end with this one.
	ctx, cancel := context.WithCancel(context.Background())
	c.cancel = cancel
	n.drainer.spawn(func() { c.informer.RunWithContext(ctx) })
	n.drainer.spawn(func() {
		select {
		case <-c.informer.HasSyncedChecker().Done():
			c.notify(func(*nodeDrain) bool { return true })
		case <-ctx.Done():
		}
	})
}

// leave ends the membership of a drain. It may be called for non-members.
func (c *collection[T]) leave(n *nodeDrain) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.members, n)
}

// stop ends the informer.
func (c *collection[T]) stop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cancel != nil {
		c.cancel()
	}
}

// known reports whether everything has been read once.
func (c *collection[T]) known() bool { return c.informer.HasSynced() }

// readError is why it cannot be read; empty while it can.
func (c *collection[T]) readError() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == "" {
		return ""
	}
	return "cannot read " + c.what + ": " + c.err
}

// get returns the object with a key of its own: its name, after its namespace if it has one.
func (c *collection[T]) get(key string) (object T, found bool) {
	obj, found, _ := c.informer.GetStore().GetByKey(key)
	if !found {
		return object, false
	}
	object, found = obj.(T)
	return object, found
}

// find returns the objects with an index key, in no order.
func (c *collection[T]) find(key string) []T {
	found, _ := c.informer.GetIndexer().ByIndex(byKeys, key)
	objects := make([]T, 0, len(found))
	for _, obj := range found {
		objects = append(objects, obj.(T))
	}
	return objects
}

// changed lets the members continue that a change concerns.
func (c *collection[T]) changed(before, after T) {
	c.notify(func(n *nodeDrain) bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return !n.stopped && c.affects(n, before, after)
	})
}

// reported records whether the kind could be read.
func (c *collection[T]) reported(err error) {
	failure := ""
	if err != nil {
		failure = toOutcome(err).reason
	}
	c.mu.Lock()
	changed := c.err != failure
	c.err = failure
	c.mu.Unlock()
	c.notify(func(*nodeDrain) bool { return changed })
}

// notify lets those members continue that are affected.
func (c *collection[T]) notify(affected func(*nodeDrain) bool) {
	c.mu.Lock()
	members := make([]*nodeDrain, 0, len(c.members))
	for n := range c.members {
		members = append(members, n)
	}
	c.mu.Unlock()
	for _, n := range members {
		if affected(n) {
			n.changed()
		}
	}
}

// listWatch returns a source from the methods of a client. It reports each failure, and each success with nil.
func listWatch[L runtime.Object](
	list func(context.Context, metav1.ListOptions) (L, error),
	watching func(context.Context, metav1.ListOptions) (watch.Interface, error),
	report func(error),
) *cache.ListWatch {
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			objects, err := list(ctx, options)
			report(err)
			return objects, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := watching(ctx, options)
			report(err)
			return events, err
		},
	}
}
