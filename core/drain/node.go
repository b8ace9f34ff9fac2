package drain

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
)

// nodeDrain is the drain of one Node.
type nodeDrain struct {
	drainer *Drainer
	target  *target
	cluster types.NamespacedName
	key     types.NamespacedName
	node    string
	nodeUID types.UID
	began   time.Time

	// ctx ends when the drain is stopped, and its requests with it.
	ctx    context.Context
	cancel context.CancelFunc

	mu      sync.Mutex
	stopped bool
	// request is that of the last Step.
	request Request
	// pods are the pods of the Node as last heard; listed means that the first list is complete.
	pods   map[types.UID]*Pod
	listed bool
	// watched means that the pods are read.
	watched bool
	// podsError is why the pods cannot be read; empty while they can.
	podsError string
	cordon    cordon
	attempts  map[types.UID]*attempt
	// evicted counts the pods that are gone and whose eviction or deletion was sent and not refused.
	evicted int
	// sending is the context of evictions and deletions, of which inFlight are under way; cutOff ends them.
	sending  context.Context
	cutOff   context.CancelFunc
	inFlight int
	// force is the forced drain, nil while it is not.
	force *force
	// handovers are the volumes on their way to other Nodes.
	handovers map[string]handover
	// wake fires when something is due by time alone; progress when a combined notification is due.
	wake, progress clock.Timer
	// reported is what the last Step has returned.
	reported Result
}

func newNodeDrain(drainer *Drainer, target *target, request *Request) *nodeDrain {
	ctx, cancel := context.WithCancel(context.Background())
	sending, cutOff := context.WithCancel(ctx)
	return &nodeDrain{
		drainer: drainer, target: target,
		cluster: request.Cluster, key: request.Key,
		node: request.Node.Name, nodeUID: request.Node.UID, began: drainer.options.Clock.Now(),
		ctx: ctx, cancel: cancel, sending: sending, cutOff: cutOff,
		request:  *request,
		pods:     map[types.UID]*Pod{},
		attempts: map[types.UID]*attempt{},
	}
}

// serves reports whether the drain is the one that a request is about.
func (n *nodeDrain) serves(request *Request) bool {
	return n.cluster == request.Cluster && n.node == request.Node.Name && n.nodeUID == request.Node.UID &&
		(n.watched || request.Mode == Detach) && n.target.source == request.Config
}

// start begins to read the pods.
func (n *nodeDrain) start() {
	if n.request.Mode != Detach {
		n.watched = true
		n.drainer.spawn(n.watch)
	}
}

// stop ends everything that the drain has under way, without waiting for it.
func (n *nodeDrain) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	n.cancel()
	n.target.leave(n)
	stopTimer(&n.wake)
	stopTimer(&n.progress)
}

// step takes over the request, does what is due and returns how far the drain is.
func (n *nodeDrain) step(request Request) Result {
	n.mu.Lock()
	defer n.mu.Unlock()
	forcedNow := n.setMode(request.Mode)
	n.request = request
	n.cordon.observe(request.Node, n.now())
	n.reported = n.advance()
	n.reported.ForcedNow = forcedNow
	stopTimer(&n.progress)
	return n.reported
}

func (n *nodeDrain) now() time.Time { return n.drainer.options.Clock.Now() }
