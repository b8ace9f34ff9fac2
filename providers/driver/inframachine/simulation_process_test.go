package inframachine

import (
	"context"
	"fmt"
	"net/http"
	"runtime/debug"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	controllermanager "millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	examplev1 "millwright.dev/test/clouds/example/provider/api/v1alpha1"
	"millwright.dev/test/clouds/example/provider/instance"
)

// simProcess is one incarnation of the provider: a Reconciler with its inventory, batches, queue and workers, a cache of its own that lags
// behind its API server, and a memory that ends with it.
type simProcess struct {
	w      *simWorld
	server *simServer
	name   string
	ctx    context.Context
	end    context.CancelFunc
	r      *Reconciler[*examplev1.ExampleMachine]
	queue  workqueue.TypedRateLimitingInterface[reconcile.Request]

	mu    sync.Mutex
	cache map[simID]client.Object
	// due is when the latest event of a kind arrives: those of a kind come in order.
	due map[string]time.Time
}

// start begins an incarnation on an API server.
func (w *simWorld) start(server *simServer) *simProcess {
	w.mu.Lock()
	w.incarnations++
	p := &simProcess{w: w, server: server, name: fmt.Sprintf("p%d", w.incarnations), cache: map[simID]client.Object{}, due: map[string]time.Time{}}
	w.processes = append(w.processes, p)
	w.logLocked("%s starts on %s", p.name, server.name)
	p.ctx, p.end = context.WithCancel(ctrl.LoggerInto(context.Background(), logr.Discard()))
	waker := wake.New()
	p.r = &Reconciler[*examplev1.ExampleMachine]{
		Client: &simClient{p: p}, APIReader: &simReader{p: p}, Recorder: simRecorder{p}, Clock: clock.RealClock{},
		Driver: w.driver(instance.New("http://cloud", &simTransport{p: p, cloud: w.cloud.Transport()},
			func(context.Context, driver.Scope) (string, error) { return simToken, nil })),
		Kind: "ExampleMachine", group: examplev1.GroupVersion.Group, Options: w.options,
		New:     func() *examplev1.ExampleMachine { return &examplev1.ExampleMachine{} },
		NewList: func() client.ObjectList { return &examplev1.ExampleMachineList{} },
	}
	p.r.Options.Random = func(below time.Duration) time.Duration {
		return time.Duration(w.random.draw(fmt.Sprint(p.name, " jitter ", below)).Int64N(int64(below)))
	}
	runnables := p.r.complete(waker)
	p.queue = workqueue.NewTypedRateLimitingQueue(controllermanager.ControllerOptions[reconcile.Request](1).RateLimiter)
	_ = p.r.inventory.Source().Start(p.ctx, p.queue)
	_ = waker.Source().Start(p.ctx, p.queue)
	p.synchronize()
	w.mu.Unlock()
	for _, runnable := range runnables {
		go func() { _ = runnable.Start(p.ctx) }()
	}
	for range w.workers {
		go p.work()
	}
	return p
}

// synchronize fills the cache with what it was a moment ago, and has it learn of what has happened since. w.mu is held.
func (p *simProcess) synchronize() {
	lag := p.w.lag(p.w.random.draw(p.name + " start"))
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
func (p *simProcess) deliver(id simID, obj client.Object) {
	at := time.Now().Add(p.w.lag(p.w.random.draw(p.name + " lag " + id.kind)))
	if due := p.due[id.kind]; !at.After(due) {
		at = due.Add(time.Nanosecond)
	}
	p.due[id.kind] = at
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
func (p *simProcess) notify(before, after client.Object) {
	latest := after
	if latest == nil {
		latest = before
	}
	var requests []reconcile.Request
	passes, mapped := p.r.changes(), func(client.Object) []reconcile.Request {
		return []reconcile.Request{{NamespacedName: client.ObjectKeyFromObject(latest)}}
	}
	switch latest.(type) {
	case *clusterv1.Machine:
		passes, mapped = machineChanges(), func(o client.Object) []reconcile.Request { return p.r.ofMachine(p.ctx, o) }
	case *clusterv1.Cluster:
		passes, mapped = clusterChanges(), func(o client.Object) []reconcile.Request { return p.r.ofCluster(p.ctx, o) }
	case *examplev1.ExampleMachine:
	default:
		return
	}
	switch {
	case before == nil && passes.Create(event.CreateEvent{Object: after}),
		after == nil && before != nil && passes.Delete(event.DeleteEvent{Object: before}),
		before != nil && after != nil && passes.Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}):
		requests = mapped(latest)
	}
	for _, request := range requests {
		p.queue.Add(request)
	}
}

// work is what a worker of controller-runtime does.
func (p *simProcess) work() {
	for {
		request, shutdown := p.queue.Get()
		if shutdown {
			return
		}
		time.Sleep(p.w.random.between(p.name+" work", 100*time.Microsecond, 5*time.Millisecond))
		if p.dead() {
			p.queue.Done(request)
			continue
		}
		result, err := p.reconcile(request)
		switch {
		case err != nil:
			p.w.log("%s: reconcile fails: %v", p.name, err)
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

func (p *simProcess) reconcile(request reconcile.Request) (result reconcile.Result, err error) {
	defer func() {
		if panicked := recover(); panicked != nil {
			p.w.violate("panic: %v\n%s", panicked, debug.Stack())
			err = fmt.Errorf("panic: %v", panicked)
		}
	}()
	if p.w.count("reconcile") > simMostReconciles {
		p.w.violate("there are more than %d reconciles", simMostReconciles)
		p.stop("spins")
	}
	return p.r.Reconcile(p.ctx, request)
}

func (p *simProcess) dead() bool { return p.ctx.Err() != nil }

// stop ends the incarnation. None of its later calls has an effect; those under way may have.
func (p *simProcess) stop(why string) {
	if p.dead() {
		return
	}
	p.w.log("%s %s", p.name, why)
	p.end()
	p.queue.ShutDown()
}

// crash ends the incarnation; another one begins a little later.
func (p *simProcess) crash(where string) {
	if p.dead() {
		return
	}
	p.w.fault("crash")
	p.stop("crashes " + where)
	p.w.after(p.w.random.between(p.name+" restart", 10*time.Millisecond, 20*time.Second), func() { p.w.ensureProcess(p.server) })
}

// simRecorder writes events into the history.
type simRecorder struct{ p *simProcess }

func (r simRecorder) Eventf(_, _ runtime.Object, _, reason, _, note string, args ...any) {
	r.p.w.log("%s: event %s: %s", r.p.name, reason, fmt.Sprintf(note, args...))
}

// simTransport is the network between an incarnation and the cloud.
type simTransport struct {
	p     *simProcess
	cloud http.RoundTripper
}
