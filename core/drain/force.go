package drain

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// forcedAttempts is how often a forced drain tries each deletion.
const forcedAttempts = 2

// force is a forced drain: the machine goes in any case, and what can be done for the pods on it is done at once. As with
// MCM, pods are deleted without grace period instead of being evicted, regardless of budgets, order and completion. The
// VolumeAttachments of the Node are deleted only when the machine is gone, or when the request asks for it. What fails twice, or
// is not done by the deadline, is given up.
type force struct{ began, deadline time.Time }

// setMode changes the mode, and reports whether the drain has become a forced one. Requests of the mode before are cut off, so
// that they do not hold up what is done instead, and no pod is evicted that shall not be any more.
func (n *nodeDrain) setMode(mode Mode) (forcedNow bool) {
	forces := mode == Forced || mode == Detach
	if mode == n.request.Mode && forces == (n.force != nil) {
		return false
	}
	n.cutOff()
	n.sending, n.cutOff = context.WithCancel(n.ctx)
	n.inFlight, n.attempts, n.force = 0, map[types.UID]*attempt{}, nil
	if forces {
		n.force = &force{began: n.now(), deadline: n.now().Add(forceTimeout)}
	}
	return mode == Forced
}

func (n *nodeDrain) advanceForced(c circumstances) *plan {
	f := forced{
		force: *n.force, pods: n.pods, attempts: n.attempts, listed: n.read(), detach: n.request.ForceDetach,
		attachments: n.target.attachments.find(ofNode(n.node)), read: n.target.attachments.known(),
	}
	if n.request.Mode == Detach {
		f.pods, f.listed, f.detach = nil, true, true
	}
	current := makeForcedPlan(f, c)
	n.sendDeletions(current)
	return current
}

// forced is what a forced plan rests on besides the circumstances.
type forced struct {
	force
	pods map[types.UID]*Pod
	// attempts are the deletions of pods and VolumeAttachments so far.
	attempts map[types.UID]*attempt
	// listed is true when everything has been read that decisions about pods rest on.
	listed bool
	// detach is true when the VolumeAttachments of the Node are deleted.
	detach bool
	// attachments are the VolumeAttachments of the Node; read is true when they are known.
	attachments []attachment
	read        bool
}

// makeForcedPlan plans what a forced drain does next. It reads, and changes nothing.
func makeForcedPlan(f forced, c circumstances) *plan {
	p := &plan{over: !c.now.Before(f.deadline), reading: !f.listed, pods: map[State][]*Pod{}}
	if !p.over {
		p.at(f.deadline)
	}
	if p.reading {
		return p
	}
	// Pods that count as lost are deleted as well.
	c.unreachable = false
	for _, pod := range f.pods {
		switch a := f.attempts[pod.UID]; {
		case pod.Returned && !pod.FirstSeen.Before(f.began), decide(pod, c).Action == Skip:
			// A pod that returns is deleted once; its successor would come back as well.
			p.add(Staying, pod)
		case a != nil && a.ok:
			p.add(released, pod)
		case a != nil && a.failures >= forcedAttempts:
			p.add(Abandoned, pod)
		default:
			p.place(pod, a, c.now)
		}
	}
	p.sort()
	p.reading = f.detach && !f.read
	if f.detach && p.done() {
		// The volumes come after the pods.
		p.detachAll(f, c.now)
	}
	return p
}

// detachAll plans the deletion of the VolumeAttachments.
func (p *plan) detachAll(f forced, now time.Time) {
	for _, a := range f.attachments {
		known := f.attempts[a.UID]
		switch {
		case a.DeletionTimestamp != nil, known != nil && (known.ok || known.failures >= forcedAttempts):
		case known == nil || known.due(now):
			p.detach = append(p.detach, a)
		default:
			p.detaching = true
			if !known.inFlight {
				p.at(known.retryAt)
			}
		}
	}
}
