package drain

import (
	"fmt"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/resourceversion"
)

const (
	// freeCordons is how often a Node is cordoned without a pause. More would be a contest with another writer that undoes it.
	freeCordons = 3
	// maxCordonPause is what the pause before the next cordon grows to; it doubles from Options.MinRetry.
	maxCordonPause = 5 * time.Minute
	// cordonMemory is how long a Node must have stayed cordoned for what was before to be forgotten.
	cordonMemory = 2 * maxCordonPause
)

// cordon is how far the cordoning of a Node is.
type cordon struct {
	attempt
	// undone counts how often another writer has uncordoned the Node, since when it had stayed cordoned for long; last
	// is when it was cordoned last.
	undone int
	last   time.Time
	// done means that the Node is unschedulable, or has been made so, and the caller's Node is not yet that recent.
	done bool
	// seen means that the caller's Node has shown it; version is the Node's resource version when it was cordoned last.
	seen    bool
	version string
}

// observe takes in the Node as the caller has read it. Without the memory of what was seen and written, a Node that is
// older than the patch would be patched twice. One that is newer has been uncordoned: a client that does so at once is faster
// than the caller looks.
func (c *cordon) observe(node *corev1.Node, now time.Time, shortest time.Duration) {
	switch {
	case node.Spec.Unschedulable:
		c.done, c.seen = true, true
	case c.seen, c.done && c.before(node):
		c.done, c.seen = false, false
		c.undo(node, now, shortest)
	}
}

// before reports whether the Node was cordoned before it became what it is now. Versions that cannot be compared do not count.
func (c *cordon) before(node *corev1.Node) bool {
	order, err := resourceversion.CompareResourceVersion(c.version, node.ResourceVersion)
	return err == nil && order < 0
}

// undo handles that another writer has uncordoned the Node while it is drained, and sets the pause before it is cordoned again.
// Nothing is evicted meanwhile.
func (c *cordon) undo(node *corev1.Node, now time.Time, shortest time.Duration) {
	if now.Sub(c.last) > cordonMemory {
		c.undone = 0
	}
	c.undone++
	more := c.undone - freeCordons
	if more < 0 {
		return
	}
	pause := maxCordonPause
	if more < 10 {
		pause = min(shortest<<more, maxCordonPause)
	}
	c.retryAt = now.Add(pause)
	c.reason = fmt.Sprintf("another client uncordons Node %s each time it is cordoned; cordoning is retried with backoff: "+
		"find out who uncordons it (kubectl get node %s -o yaml --show-managed-fields)", node.Name, node.Name)
}

// plan moves the next deadline of a plan forward to that of the cordon.
func (c *cordon) plan(p *plan) {
	if !c.done && !c.inFlight && !c.retryAt.IsZero() {
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
		version, err := n.target.cordon(n.ctx, n.node, n.nodeUID)
		n.cordoned(version, err)
		n.changed()
	})
}

// cordoned records the answer. A Node that is not found was deleted, so nothing can be scheduled on it;
// its pods are left to finish. When another Node has its name, its pods are that one's, and stay: the caller will see it too.
func (n *nodeDrain) cordoned(version string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	answer := toOutcome(err)
	if answer.ok {
		n.cordon.attempt, n.cordon.done, n.cordon.last, n.cordon.version = attempt{}, true, n.now(), version
		return
	}
	if isOfAnotherUID(err) {
		answer.reason = "another Node has its name now"
	}
	options := &n.drainer.options
	n.cordon.refused(n.now(), answer, options.MinRetry, options.MaxRetry)
	n.cordon.reason = "cannot cordon the Node: " + answer.reason
}
