package drain

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// force is a forced drain: the machine goes in any case, and what can be done for the pods on it is done at once. As with
// MCM, pods are deleted without grace period instead of being evicted, regardless of budgets, order and completion. The
// VolumeAttachments of the Node are deleted only when the machine is gone, or when the request asks for it. What fails twice, or
// is not done by the deadline, is let be.
type force struct {
	began, deadline time.Time
	// pods and attachments are the deletions so far.
	pods, attachments map[types.UID]*attempt
}

// setMode changes the mode, and reports whether the drain has become a forced one. What is under way in the mode before is
// cut off, so that it does not hold up what is done instead, and no pod is evicted that shall not be any more.
func (n *nodeDrain) setMode(mode Mode) (forcedNow bool) {
	forces := mode == Forced || mode == Detach
	if mode == n.request.Mode && forces == (n.force != nil) {
		return false
	}
	n.sender.stop()
	n.attempts, n.force = map[types.UID]*attempt{}, nil
	if !forces {
		return false
	}
	n.force = &force{
		began: n.now(), deadline: n.now().Add(n.drainer.options.ForceTimeout),
		pods: map[types.UID]*attempt{}, attachments: map[types.UID]*attempt{},
	}
	return mode == Forced
}

func (n *nodeDrain) advanceForced(c circumstances) *plan {
	f := forced{
		force: n.force, pods: n.pods, listed: n.read(), detach: n.request.ForceDetach,
		attachments: n.target.attachments.find(ofNode(n.node)), read: n.target.attachments.known(),
	}
	if n.request.Mode == Detach {
		f.pods, f.listed, f.detach = nil, true, true
	}
	current := makeForcedPlan(f, c)
	n.sendDeletions(current)
	return current
}

// sendDeletions sends the deletions of a forced drain. It is called under mu.
func (n *nodeDrain) sendDeletions(p *plan) {
	for _, pod := range p.due {
		n.evicted.Insert(pod.UID)
		n.send(
			attemptFor(n.force.pods, pod.UID),
			func(ctx context.Context) error { return n.unlessRefused(ctx, pod, n.target.deletePod(ctx, pod)) },
		)
	}
	for _, a := range p.detach {
		n.send(attemptFor(n.force.attachments, a.UID), func(ctx context.Context) error { return n.target.detach(ctx, a) })
	}
}
