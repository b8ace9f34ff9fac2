package drain

import (
	"context"
	"slices"
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
	// seenAt is when each pod was first seen.
	seenAt map[types.UID]time.Time
	// readProblem says why the pods cannot be read; empty while they can.
	readProblem string
	// inUse are the DaemonSets that were found to exist; that is not asked again.
	inUse    map[types.UID]bool
	cordon   cordon
	attempts map[types.UID]*attempt
	// sender sends evictions and deletions.
	sender sender
	// force is the forced drain, nil while it is not.
	force *force
	// handovers are the volumes on their way to other Nodes. resumed says whether those have been looked for
	// that were under way before; they are when the Node was cordoned as the drain began here.
	handovers map[string]handover
	resumed   bool
	// wake fires when something is due by time alone; progress when a combined notification is due.
	wake, progress clock.Timer
	// told is what the last Step has returned.
	told Result
}

func newNodeDrain(drainer *Drainer, target *target, request *Request) *nodeDrain {
	ctx, cancel := context.WithCancel(context.Background())
	return &nodeDrain{
		drainer: drainer, target: target,
		cluster: request.Cluster, key: request.Key,
		node: request.Node.Name, nodeUID: request.Node.UID, began: drainer.options.Clock.Now(),
		ctx: ctx, cancel: cancel,
		request:  *request,
		pods:     map[types.UID]*Pod{},
		seenAt:   map[types.UID]time.Time{},
		inUse:    map[types.UID]bool{},
		attempts: map[types.UID]*attempt{},
		resumed:  !request.Node.Spec.Unschedulable,
	}
}

// serves says whether the drain is the one that a request is about.
func (n *nodeDrain) serves(request *Request) bool {
	return n.cluster == request.Cluster && n.node == request.Node.Name && n.nodeUID == request.Node.UID &&
		sameConnection(n.target.source, request.Config)
}

// start begins to read the pods.
func (n *nodeDrain) start() { n.drainer.spawn(n.watch) }

// stop ends everything that the drain has under way, without waiting for it.
func (n *nodeDrain) stop() {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.stopped = true
	n.cancel()
	n.sender.stop()
	n.target.leave(n)
	stopTimer(&n.wake)
	stopTimer(&n.progress)
}

// step takes over the request, does what is due and says how far the drain is.
func (n *nodeDrain) step(request Request) Result {
	n.mu.Lock()
	defer n.mu.Unlock()
	forcedNow := n.setMode(request.Mode)
	n.request = request
	n.cordon.observe(request.Node)
	n.told = n.advance()
	n.told.ForcedNow = forcedNow
	stopTimer(&n.progress)
	return n.told
}

// setMode changes the mode, and says whether the drain has become a forced one. What is under way in the mode before is
// cut off, so that it does not hold up what is done instead, and no pod is evicted that shall not be any more.
func (n *nodeDrain) setMode(mode Mode) (forcedNow bool) {
	if mode == n.request.Mode && (mode == Forced) == (n.force != nil) {
		return false
	}
	n.sender.stop()
	n.attempts, n.force = map[types.UID]*attempt{}, nil
	if mode != Forced {
		return false
	}
	n.force = &force{
		deadline: n.now().Add(n.drainer.options.ForceTimeout),
		pods:     map[types.UID]*attempt{}, attachments: map[types.UID]*attempt{},
	}
	return true
}

// changed is called, without mu, when something has happened that may call for action or be worth a report.
func (n *nodeDrain) changed() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped {
		return
	}
	n.tell(n.advance())
}

// advance sends what is due, sees to it that it is called again when more is due, and says how far the drain
// is. It is called under mu.
func (n *nodeDrain) advance() Result {
	now := n.now()
	if n.request.Mode != Observe {
		n.sendCordon(now)
	}
	n.joinNeeded()
	var current *plan
	c := n.circumstances(now)
	switch {
	case n.force != nil:
		current = n.advanceForced(c)
	case n.listed:
		current = n.advanceNormal(c)
	default:
		current = &plan{}
	}
	n.cordon.plan(current)
	n.wakeAt(current.next, now)
	return n.report(current, c)
}

func (n *nodeDrain) advanceNormal(c circumstances) *plan {
	if c.volumes != nil && c.volumes.known {
		n.moveHandovers(c)
		c.handovers = n.handovers
	}
	current := makePlan(n.pods, n.attempts, c)
	if n.request.Mode == Observe {
		current.next = time.Time{}
		return current
	}
	n.readDaemonSets(current, c.now)
	if n.cordon.done {
		n.sendEvictions(current.due)
	}
	return current
}

func (n *nodeDrain) advanceForced(c circumstances) *plan {
	current := makeForcedPlan(forced{
		force: n.force, pods: n.pods, listed: n.listed,
		attachments: n.target.attachments.find(ofNode(n.node)), read: n.target.attachments.known(),
	}, c)
	n.readDaemonSets(current, c.now)
	n.sendDeletions(current)
	return current
}

// circumstances gathers what decisions rest on.
func (n *nodeDrain) circumstances(now time.Time) circumstances {
	c := circumstances{
		now:         now,
		unreachable: Unreachable(n.request.Node),
		daemonSets:  n.daemonSet,
		rules:       n.request.Rules,
		namespaces:  n.target.namespaces.get,
		behaviour:   n.request.Behaviour,
	}
	if !c.unreachable {
		c.volumes = gatherVolumes(n.request.Node, n.target.attachments, n.target.volumes)
	}
	return c
}

// daemonSet looks the DaemonSet of a pod up, and remembers for this drain that it exists.
func (n *nodeDrain) daemonSet(pod *Pod) (exists, known bool) {
	if n.inUse[pod.DaemonSet] {
		return true, true
	}
	exists, known = n.target.daemonSets.exists(pod.DaemonSet, n.seenAt[pod.UID], n.now())
	if exists {
		n.inUse[pod.DaemonSet] = true
	}
	return exists, known
}

// readDaemonSets has the DaemonSets read where a decision waits for them, and goes on when they have been.
func (n *nodeDrain) readDaemonSets(current *plan, now time.Time) {
	ofDaemonSets := func(pod *Pod) bool { return pod.DaemonSet != "" }
	if n.stopped || !slices.ContainsFunc(current.undecided, ofDaemonSets) {
		return
	}
	if n.target.daemonSets.await(now, n.changed) {
		// The reading serves other drains too, so it does not end with this one, but by its own timeout.
		n.drainer.spawn(func() {
			n.target.daemonSets.read(context.Background(), n.target, &n.drainer.options)
		})
	}
	if _, retryAt := n.target.daemonSets.problem(); !retryAt.IsZero() {
		current.at(retryAt)
	}
}

// tell notifies the caller when there is news since the last Step: at once of the end and of the first
// obstacle, and later, so that several changes go together, of mere progress. It is called under mu.
func (n *nodeDrain) tell(now Result) {
	switch {
	case now.Done == n.told.Done && now.Message == n.told.Message && now.VolumesKnown == n.told.VolumesKnown &&
		now.VolumesProblem == n.told.VolumesProblem && slices.Equal(now.Volumes, n.told.Volumes):
	case now.settled(), len(now.Blocked) > 0 && len(n.told.Blocked) == 0, n.force != nil && now.Done,
		now.hopeless() && !n.told.hopeless(), now.drained() && !n.told.drained():
		stopTimer(&n.progress)
		n.notify()
	case n.progress == nil:
		n.progress = n.drainer.options.Clock.AfterFunc(n.drainer.options.ProgressInterval,
			func() { go n.notifyProgress() })
	}
}

func (n *nodeDrain) notifyProgress() {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.stopped || n.progress == nil {
		return
	}
	n.progress = nil
	n.notify()
}

// notify is called under mu; Options.Notify must not block and must not call Step itself.
func (n *nodeDrain) notify() { n.drainer.options.Notify(n.key) }

// wakeAt has changed called at a time, instead of at the one of the last call; never when it is zero.
func (n *nodeDrain) wakeAt(next, now time.Time) {
	stopTimer(&n.wake)
	if next.IsZero() || n.stopped {
		return
	}
	// In a goroutine, since a fake clock calls under its own lock.
	n.wake = n.drainer.options.Clock.AfterFunc(max(next.Sub(now), 0), func() { go n.changed() })
}

func stopTimer(timer *clock.Timer) {
	if *timer != nil {
		(*timer).Stop()
		*timer = nil
	}
}

func (n *nodeDrain) now() time.Time { return n.drainer.options.Clock.Now() }
