package coretest

import (
	"sync"

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// reconciles counts reconciles by namespace.
type reconciles struct {
	mutex  sync.Mutex
	counts map[string]int
}

// Reconciles returns how many reconciles of Machines of a namespace have begun so far, whatever their results. Unlike the
// metric, it leaves out those of tests that run at the same time.
func (c *Core) Reconciles(namespace string) int {
	c.reconciles.mutex.Lock()
	defer c.reconciles.mutex.Unlock()
	return c.reconciles.counts[namespace]
}

// logger returns the LogConstructor of a controller, which is called once for each reconcile and counts it.
func (r *reconciles) logger(base logr.Logger, kind string) func(*reconcile.Request) logr.Logger {
	return func(request *reconcile.Request) logr.Logger {
		if request == nil {
			return base
		}
		r.mutex.Lock()
		defer r.mutex.Unlock()
		if r.counts == nil {
			r.counts = map[string]int{}
		}
		r.counts[request.Namespace]++
		return base.WithValues(kind, request.String())
	}
}
