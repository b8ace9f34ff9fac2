package target

import (
	"context"
	"errors"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
)

// runner keeps the connection to one cluster, in one goroutine.
type runner struct {
	cluster     types.NamespacedName
	options     Options
	connections *Connections
	cancel      context.CancelFunc
	// look asks the goroutine to read the kubeconfig again.
	look chan struct{}

	mutex       sync.Mutex
	connection  *Connection
	failure     *NotConnectedError
	lastSuccess time.Time
}

// state returns the connection, or why there is none.
func (r *runner) state() (*Connection, *NotConnectedError) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.connection != nil {
		return r.connection, nil
	}
	failure := *r.failure
	failure.LastSuccess = r.lastSuccess
	return nil, &failure
}

// lastAnswer returns when the API server answered last.
func (r *runner) lastAnswer() time.Time {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.lastSuccess
}

// run dials, watches over the connection, and dials again, until ctx ends.
func (r *runner) run(ctx context.Context) {
	backoff := r.options.dialBackoff()
	for ctx.Err() == nil {
		stop, err := r.dial(ctx)
		if err != nil {
			r.disconnected(ctx, err)
			r.pause(ctx, backoff.Step())
			continue
		}
		backoff = r.options.dialBackoff()
		err = r.watchOver(ctx)
		// The subscribers learn of the loss before the cache ends, and nobody is handed the old connection any more.
		r.disconnected(ctx, err)
		stop()
	}
}

// dial makes a connection and publishes it. stop ends what it started and waits for the end.
func (r *runner) dial(ctx context.Context) (stop func(), err error) {
	from, err := r.options.kubeconfigOf(ctx, r.cluster)
	if err != nil {
		return nil, err
	}
	connection, err := newConnection(r.cluster, from, r.options, func(node *corev1.Node) { r.connections.nodeChanged(r.cluster, node) })
	if err != nil {
		return nil, &NotConnectedError{Reason: KubeconfigInvalid, Message: "the kubeconfig cannot be used", cause: err}
	}
	if err := connection.answer(ctx, r.options.ProbeTimeout); err != nil {
		return nil, err
	}
	if err := connection.mayReadNodes(ctx); err != nil {
		return nil, err
	}
	informing, cancel := context.WithCancel(ctx)
	var group wait.Group
	group.StartWithContext(informing, func(ctx context.Context) { connection.nodes.informer.RunWithContext(ctx) })
	stop = func() {
		cancel()
		group.Wait()
	}
	if err := r.sync(ctx, connection); err != nil {
		stop()
		return nil, err
	}
	r.connected(ctx, connection)
	return stop, nil
}

// sync waits until the Node cache has its first content.
func (r *runner) sync(ctx context.Context, connection *Connection) error {
	ctx, cancel := context.WithTimeout(ctx, r.options.SyncTimeout)
	defer cancel()
	if cache.WaitForCacheSync(ctx.Done(), connection.nodes.informer.HasSynced) {
		return nil
	}
	return &NotConnectedError{Reason: Unreachable, Message: "the Nodes could not be read in time", cause: ctx.Err()}
}

// watchOver probes until the connection is lost or its kubeconfig has changed.
func (r *runner) watchOver(ctx context.Context) error {
	connection, _ := r.state()
	failures := 0
	for {
		if looked := r.pause(ctx, r.options.ProbeInterval); ctx.Err() != nil {
			return &NotConnectedError{Reason: NotDialledYet, Message: "the connection was closed"}
		} else if looked && r.rotated(ctx, connection) {
			return &NotConnectedError{Reason: NotDialledYet, Message: "the kubeconfig has changed"}
		}
		err := connection.answer(ctx, r.options.ProbeTimeout)
		if err == nil {
			failures = 0
			r.answered()
			continue
		}
		failures++
		var lost *NotConnectedError
		unauthorized := errors.As(err, &lost) && lost.Reason == Unauthorized
		if unauthorized || failures >= r.options.ProbeFailures {
			return err
		}
	}
}

// rotated says whether the Secret holds another usable kubeconfig than the connection was made with. When the
// Secret is gone or broken the connection is kept: it still works, and a Cluster that is being deleted together
// with its Secret needs it for its Nodes.
func (r *runner) rotated(ctx context.Context, connection *Connection) bool {
	from, err := r.options.kubeconfigOf(ctx, r.cluster)
	if err != nil {
		ctrl.LoggerFrom(ctx).Info("Keeping the connection to the target cluster although its kubeconfig cannot be read", "reason", err.Error())
		return false
	}
	return from.hash != connection.hash
}

// pause waits for d, or until someone asks to look; it says whether someone did.
func (r *runner) pause(ctx context.Context, d time.Duration) (looked bool) {
	timer := r.options.Clock.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-r.look:
		return true
	}
	return false
}

// poke asks the goroutine to look at the kubeconfig soon; it never blocks.
func (r *runner) poke() {
	select {
	case r.look <- struct{}{}:
	default:
	}
}

func (r *runner) answered() {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.lastSuccess = r.options.Clock.Now()
}

func (r *runner) connected(ctx context.Context, connection *Connection) {
	r.mutex.Lock()
	r.connection, r.lastSuccess = connection, r.options.Clock.Now()
	r.mutex.Unlock()
	ctrl.LoggerFrom(ctx).Info("Connected to the target cluster")
	r.connections.clusterChanged(r.cluster)
}

func (r *runner) disconnected(ctx context.Context, err error) {
	failure := &NotConnectedError{Reason: Unreachable, Message: "the target cluster cannot be reached", cause: err}
	var known *NotConnectedError
	if errors.As(err, &known) {
		failure = known
	}
	r.mutex.Lock()
	news := r.connection != nil || r.failure.Reason != failure.Reason || r.failure.Error() != failure.Error()
	r.connection, r.failure = nil, failure
	r.mutex.Unlock()
	if ctx.Err() != nil || !news {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Not connected to the target cluster", "reason", failure.Reason, "message", failure.Error())
	r.connections.clusterChanged(r.cluster)
}
