package drain

import (
	"context"
	"sync"

	pkgerrors "github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
)

// Drainer holds the drains that are under way. It is safe for concurrent use.
type Drainer struct {
	options Options

	mu      sync.Mutex
	closed  bool
	drains  map[types.NamespacedName]*nodeDrain
	targets map[types.NamespacedName]*target
	// running counts the goroutines, so that Close can wait for them.
	running sync.WaitGroup
}

// New returns a Drainer. Close, or Start with a context that ends, frees what it holds.
func New(options Options) *Drainer {
	return &Drainer{
		options: options.withDefaults(),
		drains:  map[types.NamespacedName]*nodeDrain{},
		targets: map[types.NamespacedName]*target{},
	}
}

// Step begins the drain of a Node or advances it, and returns how far it is. It never waits for the network. An
// error means that the request is unusable or the Drainer is closed; what goes wrong in the target cluster is
// in Result.Message and is tried again.
//
// Between two Steps the drain continues under the last Request, as events call for it. The caller ends it with
// Forget as soon as it should not continue: when it is done, no longer wanted, or paused.
func (d *Drainer) Step(_ context.Context, request Request) (Result, error) {
	if request.Config == nil || request.Node == nil || request.Node.Name == "" {
		return Result{}, pkgerrors.New("a drain needs a Node and a configuration of its cluster")
	}
	drain, err := d.drainFor(&request)
	if err != nil {
		return Result{}, err
	}
	return drain.step(request), nil
}

// Forget ends a drain and frees what it holds. The Node stays cordoned. It may be called for drains that
// never were, and returns at once.
func (d *Drainer) Forget(key types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.forgetLocked(key)
}

// Close ends all drains and waits until all goroutines have ended. After it, Step fails.
func (d *Drainer) Close() {
	d.mu.Lock()
	d.closed = true
	for key := range d.drains {
		d.forgetLocked(key)
	}
	d.mu.Unlock()
	d.running.Wait()
}

// Start closes the Drainer when the context ends; with it the Drainer can be added to a manager.
func (d *Drainer) Start(ctx context.Context) error {
	<-ctx.Done()
	d.Close()
	return nil
}

// drainFor finds the drain of a request, or begins it. A drain of another Node, or through another
// connection, is replaced: everything that it knew can be read again.
func (d *Drainer) drainFor(request *Request) (*nodeDrain, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, pkgerrors.New("the drainer is closed")
	}
	if drain, ok := d.drains[request.Key]; ok {
		if drain.serves(request) {
			return drain, nil
		}
		d.forgetLocked(request.Key)
	}
	target, err := d.targetLocked(request)
	if err != nil {
		return nil, err
	}
	drain := newNodeDrain(d, target, request)
	d.drains[request.Key] = drain
	drain.start()
	return drain, nil
}

// targetLocked finds the target cluster of a request or makes it, and counts the user.
func (d *Drainer) targetLocked(request *Request) (*target, error) {
	current := d.targets[request.Cluster]
	if current == nil || current.source != request.Config {
		// An older one lives on until the drains that still use it have come up and been replaced.
		made, err := newTarget(request.Config)
		if err != nil {
			return nil, pkgerrors.Wrapf(err, "failed to connect to Cluster %s", request.Cluster)
		}
		d.targets[request.Cluster], current = made, made
	}
	current.users++
	return current, nil
}

// forgetLocked ends a drain, and its target cluster with the last one.
func (d *Drainer) forgetLocked(key types.NamespacedName) {
	drain, ok := d.drains[key]
	if !ok {
		return
	}
	delete(d.drains, key)
	drain.stop()
	drain.target.users--
	if drain.target.users > 0 {
		return
	}
	if d.targets[drain.cluster] == drain.target {
		delete(d.targets, drain.cluster)
	}
	drain.target.close()
}

// spawn runs a function in a goroutine that Close waits for. It is called under mu or by such a goroutine, so
// that none can begin after Close has begun to wait.
func (d *Drainer) spawn(run func()) {
	d.running.Add(1)
	go func() {
		defer d.running.Done()
		run()
	}()
}
