package simulation

import (
	"context"
	"fmt"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanager "millwright.dev/contracts/controller/manager"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inframachine"
)

// Process is one incarnation of the provider: a Reconciler with its inventory, batches, queue and workers, a cache of its own that lags
// behind its API server, and a memory that ends with it.
type Process[M driver.Object] struct {
	w      *World[M]
	server *Server[M]
	name   string
	ctx    context.Context
	end    context.CancelFunc
	r      *inframachine.Reconciler[M]
	wiring inframachine.Wiring
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu    sync.Mutex
	cache map[ID]client.Object
	// due is when the latest event of a kind arrives: those of a kind come in order.
	due map[string]time.Time
}

// Start begins an incarnation on an API server.
func (w *World[M]) Start(server *Server[M]) *Process[M] {
	w.mu.Lock()
	w.incarnations++
	p := &Process[M]{
		w: w, server: server, name: fmt.Sprintf("p%d", w.incarnations), cache: map[ID]client.Object{}, due: map[string]time.Time{},
	}
	w.processes = append(w.processes, p)
	w.LogLocked("%s starts on %s", p.name, server.Name)
	p.ctx, p.end = context.WithCancel(ctrl.LoggerInto(context.Background(), logr.Discard()))
	p.r = &inframachine.Reconciler[M]{
		Client: &cacheClient[M]{p: p}, APIReader: &directReader[M]{p: p}, Recorder: recorder[M]{p}, Clock: clock.RealClock{},
		Driver: w.Network.Driver(&transport[M]{p: p}), Kind: w.Kind.Name, New: w.Kind.New, NewList: w.Kind.NewList, Options: w.Options,
	}
	p.r.Options.Random = func(below time.Duration) time.Duration {
		return time.Duration(w.Random.Draw(fmt.Sprint(p.name, " jitter ", below)).Int64N(int64(below)))
	}
	p.wiring = p.r.Wire(w.Kind.Group)
	p.queue = workqueue.NewTypedRateLimitingQueue(controllermanager.ControllerOptions[reconcile.Request](1).RateLimiter)
	for _, source := range p.wiring.Sources {
		_ = source.Start(p.ctx, p.queue)
	}
	p.synchronize()
	w.mu.Unlock()
	for _, runnable := range p.wiring.Runnables {
		go func() { _ = runnable.Start(p.ctx) }()
	}
	for range w.Workers {
		go p.work()
	}
	return p
}

// synchronize fills the cache with what it was a moment ago, and has it learn of what has happened since. w.mu is held.
func (p *Process[M]) synchronize() {
	lag := p.w.lag(p.w.Random.Draw(p.name + " start"))
	for id, versions := range p.server.versions {
		var known client.Object
		for _, v := range versions {
			if v.at.After(time.Now().Add(-lag)) {
				p.deliver(id, v.obj)
			} else {
				known = v.obj
			}
		}
		if known != nil {
			p.mu.Lock()
			p.cache[id] = known
			p.mu.Unlock()
			p.notify(nil, known)
		}
	}
}

// deliver has a version arrive in the cache after a while. w.mu is held.
func (p *Process[M]) deliver(id ID, obj client.Object) {
	at := time.Now().Add(p.w.lag(p.w.Random.Draw(p.name + " lag " + id.Kind)))
	if due := p.due[id.Kind]; !at.After(due) {
		at = due.Add(time.Nanosecond)
	}
	p.due[id.Kind] = at
	time.AfterFunc(time.Until(at), func() {
		p.mu.Lock()
		before := p.cache[id]
		if p.cache[id] = obj; obj == nil {
			delete(p.cache, id)
		}
		p.mu.Unlock()
		p.notify(before, obj)
	})
}

// notify enqueues what an event of a watch concerns, as SetupWithManager has it.
func (p *Process[M]) notify(before, after client.Object) {
	latest := after
	if latest == nil {
		latest = before
	}
	var requests []reconcile.Request
	passes, mapped := p.wiring.Changes, func(context.Context, client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(latest)}}
	}
	if _, own := latest.(M); !own {
		at := slices.IndexFunc(p.wiring.Watches, func(w inframachine.Watch) bool { return reflect.TypeOf(w.Object) == reflect.TypeOf(latest) })
		if at < 0 {
			return
		}
		passes, mapped = p.wiring.Watches[at].Changes, p.wiring.Watches[at].Map
	}
	switch {
	case before == nil && passes.Create(event.CreateEvent{Object: after}),
		after == nil && before != nil && passes.Delete(event.DeleteEvent{Object: before}),
		before != nil && after != nil && passes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}):
		requests = mapped(p.ctx, latest)
	}
	for _, request := range requests {
		p.queue.Add(request)
	}
}

// work is what a worker of controller-runtime does.
func (p *Process[M]) work() {
	for {
		request, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		time.Sleep(p.w.Random.Between(p.name+" work", 100*time.Microsecond, 5*time.Millisecond))
		if p.Dead() {
			p.queue.Done(request)
			continue
		}
		result, err := p.reconcile(request)
		switch {
		case err != nil:
			p.w.Log("%s: reconcile fails: %v", p.name, err)
			p.queue.AddRateLimited(request)
		case result.RequeueAfter > 0:
			p.queue.Forget(request)
			p.queue.AddAfter(request, result.RequeueAfter)
		default:
			p.queue.Forget(request)
		}
		p.queue.Done(request)
	}
}

func (p *Process[M]) reconcile(request reconcile.Request) (result reconcile.Result, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			p.w.Violate("panic: %v\n%s", panicked, debug.Stack())
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	if p.w.count("reconcile") > mostReconciles {
		p.w.Violate("there are more than %d reconciles", mostReconciles)
		p.Stop("spins")
	}
	return p.r.Reconcile(p.ctx, request)
}

// Dead returns whether the incarnation has ended.
func (p *Process[M]) Dead() bool { return p.ctx.Err() != nil }

// Stop ends the incarnation. None of its later calls has an effect; those under way may have.
func (p *Process[M]) Stop(why string) {
	if p.Dead() {
		return
	}
	p.w.Log("%s %s", p.name, why)
	p.end()
	p.queue.ShutDown()
}

// Crash ends the incarnation; another one begins a little later.
func (p *Process[M]) Crash(where string) {
	if p.Dead() {
		return
	}
	p.w.Fault("crash")
	p.Stop("crashes " + where)
	p.w.After(p.w.Random.Between(p.name+" restart", 10*time.Millisecond, 20*time.Second), func() { p.w.EnsureProcess(p.server) })
}

// recorder writes events into the history.
type recorder[M driver.Object] struct{ p *Process[M] }

func (r recorder[M]) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.p.w.Log("%s: event %s: %s", r.p.name, reason, fmt.Sprintf(note, args...))
}

// Name of the incarnation in the history.
func (p *Process[M]) Name() string { return p.name }

// Reconciler of the incarnation, for what a provider calls it for by itself.
func (p *Process[M]) Reconciler() *inframachine.Reconciler[M] { return p.r }
