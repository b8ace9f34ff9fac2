package inventory

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// recorded is a queue that remembers after what time it is to hand out what is added.
type recorded struct {
	workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu     sync.Mutex
	afters []time.Duration
}

func (r *recorded) AddAfter(_ reconcile.Request, after time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.afters = append(r.afters, after)
}

func (r *recorded) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.afters)
}

func (r *recorded) last() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Max(r.afters)
}
