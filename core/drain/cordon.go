package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// cordon is how far the cordoning of a Node is.
type cordon struct {
	attempt
	// done means that the Node is unschedulable: the caller has read it so, or the last patch has made it so.
	done bool
	// version is the resource version of the caller's Node when it was cordoned last.
	version string
}

// observe evaluates the Node as the caller has read it. A Node that has changed since the last patch and is schedulable some time
// later has been uncordoned, and is cordoned again. The pause leaves the caller's cache the time to show the patch, and bounds a
// fight with another client.
func (c *cordon) observe(node *corev1.Node, now time.Time) {
	if node.Spec.Unschedulable {
		c.done = true
	} else if c.done && !now.Before(c.retryAt) && node.ResourceVersion != c.version {
		c.done = false
	}
}

// sendCordon cordons the Node if that is due. Nothing is evicted before: the pods could come back.
func (n *nodeDrain) sendCordon(now time.Time) {
	if n.stopped || n.cordon.done || !n.cordon.due(now) {
		return
	}
	n.cordon.inFlight = true
	n.drainer.spawn(func() {
		n.cordoned(n.target.cordon(n.ctx, n.node, n.nodeUID))
		n.changed()
	})
}

// cordoned records the answer. A Node that is not found was deleted, so nothing can be scheduled on it, and its pods are left to
// finish.
func (n *nodeDrain) cordoned(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	options := &n.drainer.options
	answer := toOutcome(err)
	if answer.ok {
		n.cordon = cordon{done: true, version: n.request.Node.ResourceVersion, attempt: attempt{retryAt: n.now().Add(options.MinRetry)}}
		return
	}
	n.cordon.refused(n.now(), answer, options.MinRetry, options.MaxRetry)
	n.cordon.reason = "cannot cordon the Node: " + answer.reason
}
