// Package external reads the objects of providers, whose kinds are known only at run time. It watches each
// kind from when it is first read, so that objects that refer to one of its objects are reconciled by events.
package external

import (
	"context"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/contracts/version"
)

// SyncGrace is how long the first reading of a kind may take before it is reported.
const SyncGrace = 10 * time.Second

// NotSyncedError means that a kind is known, but its objects have not been read yet. Callers wait: they are
// enqueued when the objects have been read, and once after SyncGrace.
type NotSyncedError struct {
	// Kind is the kind that is being read.
	Kind schema.GroupVersionKind
	// Overdue is true when the reading takes longer than SyncGrace, which mostly means a missing permission.
	Overdue bool
	// Cause is why the definition of the kind could not be examined; nil when its objects are what is awaited.
	Cause error
}

// Error names what is awaited and what to check.
func (e *NotSyncedError) Error() string {
	if e.Cause != nil {
		return "objects of kind " + e.Kind.Kind + "." + e.Kind.Group + " cannot be read yet: " + e.Cause.Error()
	}
	return "objects of kind " + e.Kind.Kind + "." + e.Kind.Group + " cannot be read yet: " +
		"check that the core's ClusterRole may list and watch them" +
		" (the provider's ClusterRole needs the label cluster.x-k8s.io/aggregate-to-manager)"
}

// Kinds reads providers' objects for one controller.
type Kinds struct {
	// Informers are those of the manager.
	Informers *Informers
	// Clock is the time.
	Clock clock.Clock

	controller controller.Controller
	handler    handler.EventHandler

	waker wake.Waker

	mutex sync.Mutex
	ctx   context.Context // the controller's, which watches and waiting goroutines end with
	kinds map[schema.GroupKind]*kind
}

// kind is a watched kind.
type kind struct {
	*informer
	since   time.Time
	waiters map[reconcile.Request]struct{}
}

// Bind sets for which controller the kinds are watched, and how their events map to its objects. It must be
// called before the controller starts.
func (k *Kinds) Bind(c controller.Controller, h handler.EventHandler) error {
	k.controller, k.handler, k.kinds = c, h, map[schema.GroupKind]*kind{}
	if err := c.Watch(k.Informers.definitions()); err != nil {
		return errors.Wrap(err, "watching the definitions of provider kinds")
	}
	return errors.Wrap(c.Watch(source.Func(func(ctx context.Context, queue requestQueue) error {
		k.mutex.Lock()
		k.ctx = ctx
		k.mutex.Unlock()
		k.Informers.start(ctx)
		return k.waker.Source().Start(ctx, queue)
	})), "binding the watches of provider kinds")
}

// Object is a provider's object with the contract to read it by.
type Object struct {
	*unstructured.Unstructured
	// Contract is the contract version that the kind implements.
	Contract version.Contract
}

// Get reads the referenced object from the cache. Apart from failures it returns *version.NoCRDError,
// *version.NoContractError, *version.NotServedError, *NotSyncedError, or a NotFound error of the API; each of them is followed by an
// event when it may have been overcome, and asks is the object to enqueue then.
func (k *Kinds) Get(
	ctx context.Context,
	ref clusterv1.ContractVersionedObjectReference,
	namespace string,
	asks reconcile.Request,
) (Object, error) {
	var found Object
	err := k.Informers.use(ctx, ref.GroupKind(), waiter{k, asks}, func(current *informer, resolved version.Resolved) error {
		if err := k.ready(current, asks); err != nil {
			return err
		}
		obj := &unstructured.Unstructured{}
		obj.SetGroupVersionKind(resolved.GVK)
		if err := k.Informers.cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: ref.Name}, obj); err != nil {
			return errors.Wrapf(err, "reading %s %s/%s", ref.Kind, namespace, ref.Name)
		}
		found = Object{Unstructured: obj, Contract: resolved.Contract}
		return nil
	})
	return found, err
}

// Resolve finds API version and contract of a kind.
func (k *Kinds) Resolve(ctx context.Context, gk schema.GroupKind) (version.Resolved, error) {
	k.Informers.mutex.RLock()
	defer k.Informers.mutex.RUnlock()
	return k.Informers.resolve(ctx, gk)
}

// ready makes sure that the kind is watched, and reports whether its objects have been read.
func (k *Kinds) ready(current *informer, asks reconcile.Request) error {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	watched := k.kinds[current.gvk.GroupKind()]
	if watched == nil || watched.informer != current {
		var err error
		if watched, err = k.watch(current); err != nil {
			return err
		}
		k.kinds[current.gvk.GroupKind()] = watched
	}
	if watched.HasSynced() {
		return nil
	}
	watched.waiters[asks] = struct{}{}
	return &NotSyncedError{Kind: current.gvk, Overdue: k.Clock.Since(watched.since) >= SyncGrace}
}

// watch begins to watch a kind; the mutex is held.
func (k *Kinds) watch(current *informer) (*kind, error) {
	// A source of the informer itself, not of the kind: that would get another one once this has ended, and wait for it. And its handler
	// would come a moment after the objects have been read: what was read by then and ends is no event to it.
	events := &source.Informer{Informer: current.Informer, Handler: k.handler, Predicates: []predicate.Predicate{Changed()}}
	if err := k.controller.Watch(events); err != nil {
		return nil, errors.Wrapf(err, "watching %s", current.gvk)
	}
	watched := &kind{informer: current, since: k.Clock.Now(), waiters: map[reconcile.Request]struct{}{}}
	go k.wakeWhenSynced(k.ctx, watched)
	return watched, nil
}

// wakeWhenSynced enqueues those who wait for a kind when its objects have been read, once when that takes long, and when they are not
// read any more.
func (k *Kinds) wakeWhenSynced(ctx context.Context, watched *kind) {
	ctx, end := context.WithCancel(ctx)
	defer end()
	defer context.AfterFunc(watched.life, end)()
	grace, cancel := context.WithCancel(ctx)
	overdue := k.Clock.NewTimer(SyncGrace)
	go func() {
		defer cancel()
		defer overdue.Stop()
		select {
		case <-overdue.C():
		case <-grace.Done():
		}
	}()
	synced := toolscache.WaitForCacheSync(grace.Done(), watched.HasSynced)
	cancel()
	k.wakeWaiters(watched)
	if !synced {
		toolscache.WaitForCacheSync(ctx.Done(), watched.HasSynced)
		k.wakeWaiters(watched)
	}
}

func (k *Kinds) wakeWaiters(watched *kind) {
	k.mutex.Lock()
	defer k.mutex.Unlock()
	for waiter := range watched.waiters {
		k.waker.Enqueue(waiter.NamespacedName)
	}
	watched.waiters = map[reconcile.Request]struct{}{}
}
