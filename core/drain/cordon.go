package drain

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// cordon is how far the cordoning of a Node is.
type cordon struct {
	attempt
	// done means that the Node is unschedulable, or has been made so and the caller's Node is not yet that new.
	done bool
	// seen means that the caller's Node has shown it.
	seen bool
}

// observe takes in the Node as the caller has read it. Without the memory of what was seen, a Node that is
// older than the patch would be patched twice.
func (c *cordon) observe(node *corev1.Node) {
	switch {
	case node.Spec.Unschedulable:
		c.done, c.seen = true, true
	case c.seen:
		// Someone has uncordoned it while it is drained.
		c.done, c.seen = false, false
	}
}

// plan moves the next deadline of a plan forward to that of the cordon.
func (c *cordon) plan(p *plan) {
	if !c.done && !c.inFlight && c.failures > 0 {
		p.at(c.retryAt)
	}
}

// sendCordon cordons the Node if that is due. Nothing is evicted before: the pods could come back.
func (n *nodeDrain) sendCordon(now time.Time) {
	if n.stopped || n.cordon.done || !n.cordon.due(now) {
		return
	}
	n.cordon.inFlight = true
	n.drainer.spawn(func() {
		err := n.target.cordon(n.ctx, n.node)
		n.cordoned(err)
		n.changed()
	})
}

// cordoned records the answer. A Node that is not found has gone, and with it what could be scheduled on it;
// its pods are left to finish.
func (n *nodeDrain) cordoned(err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answer := toOutcome(err)
	if answer.ok {
		n.cordon.attempt, n.cordon.done = attempt{}, true
		return
	}
	options := &n.drainer.options
	n.cordon.refused(n.now(), answer, options.MinRetry, options.MaxRetry)
	n.cordon.reason = "cannot cordon the Node: " + answer.reason
}
