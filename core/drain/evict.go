package drain

import (
	"slices"
)

// sendEvictions queues pods for eviction and starts workers for them, as many as may be under way at once. It
// is called under mu.
func (n *nodeDrain) sendEvictions(due []*Pod) {
	if n.stopped {
		return
	}
	for _, pod := range due {
		known := n.attempts[pod.UID]
		if known == nil {
			known = &attempt{}
			n.attempts[pod.UID] = known
		}
		known.inFlight = true
		n.queue = append(n.queue, pod)
	}
	for range min(len(n.queue), n.drainer.options.MaxParallelEvictions-n.workers) {
		n.workers++
		n.drainer.spawn(n.evictQueued)
	}
}

// evictQueued evicts pods until the queue is empty. The last worker looks at what has come of it, so that one
// look serves all.
func (n *nodeDrain) evictQueued() {
	for {
		pod, grace, last := n.nextQueued()
		if pod == nil {
			if last {
				n.changed()
			}
			return
		}
		err := n.target.evict(n.ctx, pod, grace)
		n.evicted(pod, toOutcome(err))
	}
}

// nextQueued takes the next pod; without one, it signs the worker off and says whether it was the last.
func (n *nodeDrain) nextQueued() (pod *Pod, graceSeconds *int64, last bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.queue) == 0 {
		n.workers--
		return nil, nil, n.workers == 0
	}
	pod = n.queue[0]
	n.queue = slices.Delete(n.queue, 0, 1)
	return pod, n.grace(), false
}

// grace is the grace period that pods are evicted with: the caller's; for an unreachable Node the shortest
// that is not a forced deletion, as nobody is there to use it; else nil, for the pod's own.
func (n *nodeDrain) grace() *int64 {
	if n.request.GracePeriodSeconds != nil || !Unreachable(n.request.Node) {
		return n.request.GracePeriodSeconds
	}
	seconds := int64(unreachableGrace.Seconds())
	return &seconds
}

// evicted records the answer.
func (n *nodeDrain) evicted(pod *Pod, answer outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	known := n.attempts[pod.UID]
	if known == nil {
		// The pod has gone in the meantime.
		return
	}
	if answer.ok {
		known.granted(n.now())
		return
	}
	options := &n.drainer.options
	known.refused(n.now(), answer, options.MinRetry, options.MaxRetry)
}
