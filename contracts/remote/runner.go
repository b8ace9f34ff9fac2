package remote

import (
	"context"
	"errors"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
)

// runner keeps one connection, in one goroutine.
type runner struct {
	key types.NamespacedName
	// clusters are the Clusters that use it; guarded by the mutex of connections.
	clusters    map[types.NamespacedName]bool
	options     Options
	connections *Connections
	cancel      context.CancelFunc
	// look asks the goroutine to read the kubeconfig again.
	look chan struct{}
	// suspected asks it to probe before it is time: a request over the connection has failed.
	suspected chan struct{}

	mutex       sync.Mutex
	connection  *Connection
	failure     *NotConnectedError
	lastSuccess time.Time
	// unanswered is what came of the latest probe of the connection; "" when it was answered. asked is when the first was sent that was not.
	unanswered string
	asked      time.Time
	// kept is why the connection continues although the kubeconfig that it was created with is not there any more.
	kept string
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

// run dials, probes the connection until it is lost, and dials again, until ctx ends.
func (r *runner) run(ctx context.Context) {
	backoff := r.options.dialBackoff()
	for ctx.Err() == nil {
		stop, err := r.dial(ctx)
		if err != nil {
			r.disconnected(ctx, err)
			// Nothing but a change of the kubeconfig ends it: the failure of this attempt's own probe would.
			r.pause(ctx, backoff.Step(), nil)
			continue
		}
		backoff = r.options.dialBackoff()
		err = r.watchOver(ctx)
		// The subscribers are notified of the loss before the cache ends, and no caller gets the old connection any more.
		r.disconnected(ctx, err)
		stop()
	}
}

// dial connects, and publishes the connection. stop ends what it has started, and waits for the end.
func (r *runner) dial(ctx context.Context) (stop func(), err error) {
	from, err := r.options.kubeconfigOf(ctx, r.key)
	if err != nil {
		return nil, err
	}
	connection, err := r.prepare(from)
	if err != nil {
		return nil, &NotConnectedError{Reason: KubeconfigInvalid, Message: "the kubeconfig cannot be used", cause: err}
	}
	err = connection.answer(ctx, r.options.ProbeTimeout)
	if err == nil {
		err = connection.attachment.Check(ctx)
	}
	if err != nil {
		connection.hangUp()
		return nil, err
	}
	running, cancel := context.WithCancel(ctx)
	var group wait.Group
	group.StartWithContext(running, connection.attachment.Run)
	stop = func() {
		cancel()
		close(connection.ended)
		group.Wait()
		connection.hangUp()
	}
	if err := r.sync(ctx, connection); err != nil {
		stop()
		return nil, err
	}
	r.connected(ctx, connection)
	return stop, nil
}

// prepare returns a connection with what is attached to it; nothing is sent yet.
func (r *runner) prepare(from kubeconfig) (*Connection, error) {
	connection, err := newConnection(r.key, from, r.options)
	if err != nil {
		return nil, err
	}
	connection.runner, connection.attachment = r, nothing{}
	if r.options.Attach != nil {
		connection.attachment, err = r.options.Attach(connection)
	}
	return connection, err
}

// nothing is the Attachment of those that need none.
type nothing struct{}

func (nothing) Check(context.Context) error { return nil }
func (nothing) Run(context.Context)         {}
func (nothing) HasSynced() bool             { return true }

// sync waits until what is attached has read what it must, as long as the kubeconfig is the same: one that was taken back since it was
// checked never lets it. A management API server that hangs on the kubeconfig does not keep a connection that has read all from being used.
func (r *runner) sync(ctx context.Context, connection *Connection) error {
	var reading wait.Group
	defer reading.Wait()
	ctx, cancel := context.WithTimeout(ctx, r.options.SyncTimeout)
	defer cancel()
	synced, changed := make(chan bool, 1), make(chan struct{})
	go func() { synced <- cache.WaitForCacheSync(ctx.Done(), connection.attachment.HasSynced) }()
	reading.StartWithContext(ctx, func(ctx context.Context) {
		if r.changes(ctx, connection) {
			close(changed)
		}
	})
	select {
	case done := <-synced:
		if !done {
			return connection.Failed(Unreachable, "the "+r.options.Probe.Name+" could not be read in time", ctx.Err())
		}
		cancel()
		reading.Wait()
		select {
		case <-changed:
			return kubeconfigChanged()
		default:
			return nil
		}
	case <-changed:
		return kubeconfigChanged()
	}
}

// changes waits for another kubeconfig than that of the connection; it reports false when ctx ends first.
func (r *runner) changes(ctx context.Context, connection *Connection) bool {
	for {
		// A change is notified once, and the read of it may fail.
		timer := r.options.Clock.NewTimer(r.options.ProbeInterval)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-r.look:
			timer.Stop()
		case <-timer.C():
		}
		from, err := r.options.kubeconfigOf(ctx, r.key)
		if err == nil && from.hash != connection.hash {
			return true
		}
		if ctx.Err() != nil {
			// There is no second notice of the change that was to be read.
			r.poke()
			return false
		}
	}
}

func kubeconfigChanged() error {
	return &NotConnectedError{Reason: NotDialledYet, Message: "the kubeconfig has changed"}
}

// rotated reports whether there is another usable kubeconfig than that of the connection, and whether that could not be
// read. When the Secret is gone or broken the connection is kept: it still works, and a Cluster that is being
// deleted together with its Secret needs it for its Nodes. Why it is kept is in KubeconfigError.
func (r *runner) rotated(ctx context.Context, connection *Connection) (rotated, unread bool) {
	from, err := r.options.kubeconfigOf(ctx, r.key)
	if err == nil {
		r.keep(ctx, nil)
		return from.hash != connection.hash, false
	}
	var unusable *NotConnectedError
	if !errors.As(err, &unusable) {
		unusable = &NotConnectedError{Reason: KubeconfigMissing, Message: "the kubeconfig could not be read", cause: err}
	}
	r.keep(ctx, unusable)
	return false, unusable.Reason == KubeconfigMissing && unusable.cause != nil
}

// keep records why the connection continues with an earlier kubeconfig; nil that it does not.
func (r *runner) keep(ctx context.Context, unusable *NotConnectedError) {
	message := ""
	if unusable != nil {
		message = unusable.Message
	}
	r.mutex.Lock()
	changed := r.kept != message
	r.kept = message
	r.mutex.Unlock()
	if !changed {
		return
	}
	if unusable != nil {
		ctrl.LoggerFrom(ctx).
			Info("Keeping the connection to the target cluster although its kubeconfig cannot be used", "reason", unusable.Error())
	}
	r.connections.connectivityChanged(r)
}

// kubeconfigError returns why the connection continues with an earlier kubeconfig; "" when it does not, or there is none.
func (r *runner) kubeconfigError() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if r.connection == nil {
		return ""
	}
	return r.kept
}

// pause waits for d, for a poke, or for a suspicion; it reports what has ended it.
func (r *runner) pause(ctx context.Context, d time.Duration, suspicions <-chan struct{}) (looked, suspected bool) {
	timer := r.options.Clock.NewTimer(d)
	defer timer.Stop()
	if r.options.onPause != nil {
		r.options.onPause(r.options.Clock.Now().Add(d))
	}
	select {
	case <-ctx.Done():
	case <-timer.C():
	case <-r.look:
		return true, false
	case <-suspicions:
		return false, true
	}
	return false, false
}

// poke asks the goroutine to look at the kubeconfig soon; it never blocks.
func (r *runner) poke() {
	select {
	case r.look <- struct{}{}:
	default:
	}
}

func (r *runner) connected(ctx context.Context, connection *Connection) {
	select {
	case <-r.suspected: // Of an earlier connection.
	default:
	}
	r.mutex.Lock()
	r.connection, r.lastSuccess, r.kept, r.unanswered = connection, r.options.Clock.Now(), "", ""
	r.mutex.Unlock()
	close(connection.handedOut)
	ctrl.LoggerFrom(ctx).Info("Connected to the target cluster")
	r.connections.connectivityChanged(r)
}

func (r *runner) disconnected(ctx context.Context, err error) {
	failure := &NotConnectedError{Reason: Unreachable, Message: "the target cluster cannot be reached", cause: err}
	var known *NotConnectedError
	if errors.As(err, &known) {
		failure = known
	}
	r.mutex.Lock()
	changed := r.connection != nil || r.failure.Reason != failure.Reason || r.failure.Error() != failure.Error()
	r.connection, r.failure = nil, failure
	r.mutex.Unlock()
	if ctx.Err() != nil || !changed {
		return
	}
	ctrl.LoggerFrom(ctx).Info("Not connected to the target cluster", "reason", failure.Reason, "message", failure.Error())
	r.connections.connectivityChanged(r)
}
