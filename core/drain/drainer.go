package drain

import (
	"context"
	"sync"
	"time"

	pkgerrors "github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/types"
)

// linger is how long a target cluster is kept after its last drain: in a rollout the next one is not far.
const linger = 30 * time.Second

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

// ForgetCluster ends at once what is kept of a target cluster for drains to come. It is called when the cluster does not
// exist any more; drains that are under way in it continue until they are forgotten.
func (d *Drainer) ForgetCluster(cluster types.NamespacedName) {
	d.mu.Lock()
	defer d.mu.Unlock()
	known, ok := d.targets[cluster]
	if !ok {
		return
	}
	known.expired = true
	if known.users == 0 {
		d.dropLocked(cluster, known)
	}
}

// Close ends all drains and waits until all goroutines have ended. After it, Step fails.
func (d *Drainer) Close() {
	d.mu.Lock()
	d.closed = true
	for key := range d.drains {
		d.forgetLocked(key)
	}
	for cluster, target := range d.targets {
		d.dropLocked(cluster, target)
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
	current, ok := d.targets[request.Cluster]
	if !ok || !sameConnection(current.source, request.Config) {
		// An older one lives on until the drains that still use it have come up and been replaced.
		made, err := newTarget(request.Config, &d.options)
		if err != nil {
			return nil, pkgerrors.Wrapf(err, "failed to connect to Cluster %s", request.Cluster)
		}
		if ok && current.users == 0 {
			current.close()
		}
		d.targets[request.Cluster], current = made, made
	}
	stopTimer(&current.expiry)
	current.users++
	return current, nil
}

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
	if d.closed || drain.target.expired || d.targets[drain.cluster] != drain.target {
		d.dropLocked(drain.cluster, drain.target)
		return
	}
	unused := drain.target
	// A clock may call with a lock held that a caller who asks it for the time needs.
	unused.expiry = d.options.Clock.AfterFunc(linger, func() { go d.expire(drain.cluster, unused) })
}

// expire ends a target cluster that has had no drain for a while.
func (d *Drainer) expire(cluster types.NamespacedName, unused *target) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if unused.users == 0 {
		d.dropLocked(cluster, unused)
	}
}

// dropLocked ends a target cluster that no drain uses.
func (d *Drainer) dropLocked(cluster types.NamespacedName, unused *target) {
	if d.targets[cluster] == unused {
		delete(d.targets, cluster)
	}
	unused.close()
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
