package external

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/version"
)

// minReopen and maxReopen bound the pause after an attempt to examine a definition that failed. It doubles. The first one is short: a kind
// that was installed a moment ago may be missing from discovery.
const minReopen, maxReopen = 200 * time.Millisecond, time.Minute

// errUnanswered is why a definition could not be examined while no attempt has ended.
var errUnanswered = errors.New("the API server has not answered about its CustomResourceDefinition, or about the resources of its group")

// opening examines the definition of a kind, and begins to read its objects if there is no informer that can be kept. There is one at a
// time for each kind. All fields but of and waiters are set once; the Informers' mutex protects those and what follows.
type opening struct {
	gk schema.GroupKind
	// of is the definition to be examined; without a kind when there is none any more.
	of version.Resolved
	// waiters are enqueued when there is an informer for the first time, and when there is none any more.
	waiters map[waiter]struct{}
	// overdue is true once the opening takes longer than SyncGrace, and failure is why, if an attempt has ended.
	overdue bool
	failure error
	// again ends the present attempt, also the pause after it.
	again context.CancelFunc
}

// waiter is an object that a controller waits with.
type waiter struct {
	kinds   *Kinds
	request reconcile.Request
}

// open returns the opening of a kind for a definition; the mutex is held.
func (i *Informers) open(gk schema.GroupKind, resolved version.Resolved) *opening {
	o := i.openings[gk]
	if o == nil {
		o = &opening{gk: gk, of: resolved, waiters: map[waiter]struct{}{}, again: func() {}}
		i.openings[gk] = o
		go i.examine(i.life, o)
	}
	o.aim(resolved)
	return o
}

// aim sets what is to be examined; the mutex is held.
func (o *opening) aim(resolved version.Resolved) {
	if o.of != resolved {
		o.of = resolved
		o.again()
	}
}

// notSynced is the error for who needs the objects of the kind; the mutex is held.
func (o *opening) notSynced() error {
	cause := o.failure
	if cause == nil {
		cause = errUnanswered
	}
	return &NotSyncedError{Kind: o.of.GVK, Overdue: o.overdue, Cause: cause}
}

// examine makes attempts until one succeeds or nothing is to be examined any more.
func (i *Informers) examine(ctx context.Context, o *opening) {
	overdue := i.Clock.NewTimer(SyncGrace)
	defer overdue.Stop()
	ended := make(chan struct{})
	defer close(ended)
	go func() {
		select {
		case <-overdue.C():
			i.overdue(o)
		case <-ended:
		}
	}()
	last, pause := version.Resolved{}, minReopen
	for ctx.Err() == nil {
		attempt, cancel := context.WithCancel(ctx)
		i.mutex.Lock()
		of, kept := o.of, i.kinds[o.gk].keeps(o.of)
		o.again = cancel
		i.mutex.Unlock()
		if of != last {
			last, pause = of, minReopen
		}
		begun, err := i.attempt(attempt, of, kept)
		if i.conclude(attempt, o, of, begun, err) {
			cancel()
			return
		}
		wait := i.Clock.NewTimer(pause)
		select {
		case <-wait.C():
		case <-attempt.Done():
		}
		wait.Stop()
		cancel()
		pause = min(2*pause, maxReopen)
	}
}

// attempt examines a definition, and begins to read the objects of the kind unless its informer is kept.
func (i *Informers) attempt(ctx context.Context, of version.Resolved, kept bool) (cache.Informer, error) {
	if of.GVK.Empty() {
		return nil, nil
	}
	if err := i.served(ctx, of); err != nil || kept {
		return nil, err
	}
	// The cache asks its mapper while it holds a lock that all readers need. By then the mapper must know the answer.
	if _, err := i.mapper.RESTMapping(of.GVK.GroupKind(), of.GVK.Version); err != nil {
		return nil, errors.Wrapf(err, "finding the resource of %s", of.GVK)
	}
	begun, err := i.cache.GetInformer(ctx, objectOf(of.GVK), cache.BlockUntilSynced(false))
	return begun, errors.Wrapf(err, "watching %s", of.GVK)
}

// conclude puts the result of an attempt into effect, and reports whether it is the last one.
func (i *Informers) conclude(ctx context.Context, o *opening, of version.Resolved, begun cache.Informer, err error) bool {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	found := i.kinds[o.gk]
	switch {
	case o.of != of, err == nil && begun == nil && found == nil && !of.GVK.Empty():
		// The definition has changed meanwhile; its label perhaps forth and back, which ended an informer that was to be kept.
		if begun != nil {
			i.remove(ctx, of.GVK)
		}
		o.again() // No pause.
		return false
	case of.GVK.Empty():
	case NotServed(err):
		i.unserved[o.gk] = unserved{of: of, err: err}
		if found != nil {
			i.end(ctx, o.gk)
		}
	case err != nil:
		// An attempt that was left off has not failed.
		if ctx.Err() == nil {
			ctrl.LoggerFrom(ctx).Error(err, "The definition of a kind could not be examined; this is tried again", "kind", of.GVK)
			o.failure = err
		}
		return false
	case begun != nil:
		life, end := context.WithCancel(context.Background())
		i.kinds[o.gk] = &informer{Informer: begun, gvk: of.GVK, of: of, life: life, end: end}
	default:
		// What callers have read meanwhile was right.
		found.of = of
		clear(o.waiters)
	}
	delete(i.openings, o.gk)
	o.wake()
	return true
}

// overdue has it reported that a kind has not been read for long.
func (i *Informers) overdue(o *opening) {
	i.mutex.Lock()
	defer i.mutex.Unlock()
	o.overdue = true
	o.wake()
}

// wake enqueues those who wait; the mutex is held.
func (o *opening) wake() {
	for w := range o.waiters {
		w.kinds.waker.Enqueue(w.request.NamespacedName)
	}
	clear(o.waiters)
}
