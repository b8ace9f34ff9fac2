package drain

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// sendEvictions sends evictions of pods. It is called under mu.
func (n *nodeDrain) sendEvictions(pods []*Pod) {
	var grace *int64
	if Unreachable(n.request.Node) {
		// The shortest that is not a forced deletion: nothing on the Node could use it.
		seconds := int64(unreachableGrace.Seconds())
		grace = &seconds
	}
	for _, pod := range pods {
		n.send(pod.UID, func(ctx context.Context) error { return n.target.evict(ctx, pod, grace) })
	}
}

// sendDeletions sends the deletions of a forced drain. It is called under mu.
func (n *nodeDrain) sendDeletions(p *plan) {
	for _, pod := range p.pods[due] {
		n.send(pod.UID, func(ctx context.Context) error { return n.target.deletePod(ctx, pod) })
	}
	for _, a := range p.detach {
		n.send(a.UID, func(ctx context.Context) error { return n.target.detach(ctx, a) })
	}
}

// send has a request about an object sent, unless as many as allowed are under way: each answer has the drain advance, and with
// it the next one sent. It is called under mu.
func (n *nodeDrain) send(uid types.UID, request func(context.Context) error) {
	if n.stopped || n.inFlight >= maxParallelEvictions {
		return
	}
	n.inFlight++
	if n.attempts[uid] == nil {
		n.attempts[uid] = &attempt{}
	}
	a, ctx := n.attempts[uid], n.sending
	a.inFlight = true
	n.drainer.spawn(func() {
		n.answered(ctx, a, toOutcome(request(ctx)))
		n.changed()
	})
}

// answered records an answer, unless the mode has changed since the request was sent.
func (n *nodeDrain) answered(ctx context.Context, a *attempt, answer outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	n.inFlight--
	if answer.ok {
		a.granted(n.now())
		a.gone = answer.gone
		return
	}
	options := &n.drainer.options
	a.refused(n.now(), answer, options.MinRetry, options.MaxRetry)
	if answer.budget != "" || answer.several {
		n.target.budgets.join(n)
	}
}

// evictedPods counts the pods that are being, or were, removed by eviction or deletion. It is called under mu.
func (n *nodeDrain) evictedPods() int {
	count := n.evicted
	for uid := range n.attempts {
		if pod := n.pods[uid]; pod != nil && pod.DeletionTimestamp != nil {
			count++
		}
	}
	return count
}
