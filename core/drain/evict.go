package drain

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// sendEvictions sends evictions of pods, as many at once as allowed. It is called under mu.
func (n *nodeDrain) sendEvictions(due []*Pod) {
	grace := n.grace()
	for _, pod := range due {
		n.send(attemptFor(n.attempts, pod.UID), func(ctx context.Context) error { return n.target.evict(ctx, pod, grace) })
	}
}

// sendDeletions sends the deletions of a forced drain. It is called under mu.
func (n *nodeDrain) sendDeletions(p *plan) {
	for _, pod := range p.due {
		n.send(attemptFor(n.force.pods, pod.UID), func(ctx context.Context) error { return n.target.deletePod(ctx, pod) })
	}
	for _, a := range p.detach {
		n.send(attemptFor(n.force.attachments, a.uid), func(ctx context.Context) error { return n.target.detach(ctx, a) })
	}
}

func attemptFor(attempts map[types.UID]*attempt, uid types.UID) *attempt {
	known := attempts[uid]
	if known == nil {
		known = &attempt{}
		attempts[uid] = known
	}
	return known
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
