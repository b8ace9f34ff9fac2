package drain

import (
	"context"

	"k8s.io/apimachinery/pkg/types"
)

// sendEvictions sends evictions of pods, as many at once as allowed. It is called under mu.
func (n *nodeDrain) sendEvictions(due []*Pod) {
	grace := n.grace()
	for _, pod := range due {
		n.evicted.Insert(pod.UID)
		n.send(attemptFor(n.attempts, pod.UID), func(ctx context.Context) error {
			return n.unlessRefused(ctx, pod, n.target.evict(ctx, pod, grace))
		})
	}
}

// unlessRefused takes back that a pod is evicted when the target cluster has refused it. The watch may show that the pod
// is gone before the answer comes, so that it counts from the request on.
func (n *nodeDrain) unlessRefused(ctx context.Context, pod *Pod, err error) error {
	if err != nil && ctx.Err() == nil {
		n.mu.Lock()
		defer n.mu.Unlock()
		n.evicted.Delete(pod.UID)
	}
	return err
}

// evictedPods counts the pods that are being, or were, removed by eviction or deletion. It is called under mu.
func (n *nodeDrain) evictedPods() int {
	count := 0
	for uid := range n.evicted {
		if pod := n.pods[uid]; pod == nil || pod.DeletionTimestamp != nil {
			count++
		}
	}
	return count
}

func attemptFor(attempts map[types.UID]*attempt, uid types.UID) *attempt {
	known := attempts[uid]
	if known == nil {
		known = &attempt{}
		attempts[uid] = known
	}
	return known
}

// grace is the grace period that pods are evicted with: for an unreachable Node the shortest that is not a forced deletion, as
// nothing is there to use it; else nil, for the pod's own.
func (n *nodeDrain) grace() *int64 {
	if !Unreachable(n.request.Node) {
		return nil
	}
	seconds := int64(unreachableGrace.Seconds())
	return &seconds
}
