package inframachine

import (
	"context"
	"time"

	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

const (
	// clockSkew is by how much the clocks of the cloud and of this process may differ.
	clockSkew = time.Minute
	// usualNotice is how long before an interruption it is announced, where the cloud does not say when it comes.
	usualNotice = 2 * time.Minute
	// firstDeletionRetry and longestDeletionRetry are the pauses after which it is tried again to delete the Machine. They double.
	firstDeletionRetry   = 2 * time.Second
	longestDeletionRetry = 15 * time.Second
	// deletionTimeout limits each read and write of that.
	deletionTimeout = 10 * time.Second
)

// interruption is what the cloud has announced of the instance of one object, and what has become of the Machine.
type interruption struct {
	notice Notice
	// uid of the object.
	uid types.UID
	// settled is true if nothing more is to be done.
	settled bool
	// message reports what has become of the Machine; empty if nothing has yet.
	message string
	// retries is how often the Machine was kept, and next when that is checked again.
	retries int
	next    time.Time
}

// Interrupted takes in that the cloud takes the instance of the object back, and has the Machine deleted, so that the core drains its Node
// while there is time, and its MachineSet creates another. Call this only with what the cloud reported: an annotation
// may have been written by anyone who may write the object.
//
// It returns whether nothing more is to be done about it. Until then the caller keeps what the cloud announced where it survives the
// process, and calls again: nothing of this is persisted.
func (r *Reconciler[M]) Interrupted(obj client.Object, n Notice) bool {
	if !n.isInterruption() || !n.inTime(r.Clock.Now()) {
		return true
	}
	key := client.ObjectKeyFromObject(obj)
	if known := r.interrupted.get(key); known.about(obj, n.ProviderID) && !n.At.After(known.notice.At) {
		return known.settled
	}
	r.interrupted.set(key, interruption{notice: n, uid: obj.GetUID()})
	r.waker.Enqueue(key)
	return false
}

// inTime is true while a Node can be drained before the interruption, as far as the clocks allow to say.
func (n *Notice) inTime(now time.Time) bool {
	deadline := n.Deadline
	if deadline.IsZero() {
		deadline = n.At.Add(usualNotice)
	}
	return now.Before(deadline.Add(clockSkew)) && n.counts(n.ProviderID, now) > 0
}

// about is true if it is about this instance of this very object.
func (i interruption) about(obj client.Object, providerID string) bool {
	return i.notice.ProviderID != "" && i.notice.ProviderID == providerID && i.uid == obj.GetUID()
}

// replaceInterrupted deletes the Machine of an instance that the cloud has announced to take back.
func (r *Reconciler[M]) replaceInterrupted(ctx context.Context, s *scope[M]) outcome.Outcome {
	i := r.interrupted.get(s.Key())
	left := i.notice.counts(s.handle.ProviderID, s.Now)
	if !i.about(s.Object, s.handle.ProviderID) || left == 0 || s.observed.failure != nil {
		return outcome.Continue()
	}
	if !s.observed.notice.isInterruption() { // The annotation is refused, not seen yet, or another by now.
		s.observed.notice = &i.notice
		r.inventory.Track(s.Key(), s.handle, true)
	}
	s.observed.replaced = i.message
	switch wait := i.next.Sub(s.Now); {
	case i.settled:
		return outcome.ContinueAfter(left)
	case !i.notice.inTime(s.Now):
		r.settle(s, &i, resultLate)
		return outcome.ContinueAfter(left)
	case wait > 0:
		return outcome.ContinueAfter(wait)
	}
	// A webhook for deletions that hangs must not hold all workers: as many wait for it as may call one scope of the cloud.
	if out := r.takeTurn(ctx, s); !out.Finished() {
		return out
	}
	r.deleteMachine(ctx, s, &i)
	if i.settled {
		return outcome.ContinueAfter(left)
	}
	return outcome.ContinueAfter(i.next.Sub(s.Now))
}

// deleteMachine deletes the Machine exactly as it was just read, if it is one to be replaced, and notes what has become of it.
func (r *Reconciler[M]) deleteMachine(ctx context.Context, s *scope[M], i *interruption) {
	ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	machine, keep, err := r.toReplace(ctx, s)
	if err == nil && keep == nil {
		preconditions := client.Preconditions{UID: &machine.UID, ResourceVersion: &machine.ResourceVersion}
		target := &clusterv1.Machine{}
		target.Namespace, target.Name = machine.Namespace, machine.Name
		err = r.Client.Delete(ctx, target, preconditions)
	}
	switch {
	case persist.LostRace(err):
		r.retry(s, i, i.message)
	case persist.IgnoreGone(err) != nil:
		interrupted.WithLabelValues(r.Kind, resultRefused).Inc()
		r.retry(s, i, "Its Machine cannot be deleted, to be drained and replaced: "+err.Error())
	case err != nil: // It went meanwhile.
		r.settle(s, i, resultGone)
	case keep != nil && keep.ends != "":
		i.message = keep.why
		r.settle(s, i, keep.ends)
	case keep != nil:
		r.retry(s, i, keep.why)
	default:
		i.message = "Its Machine was deleted, to be drained and replaced"
		s.events.Normal(replacedEvent, "Replace", "Deleted Machine %s, to be drained and replaced: %s", machine.Name, i.notice.String())
		r.settle(s, i, resultDeleted)
	}
}

// retry notes why the Machine is kept for now; an event reports it once.
func (r *Reconciler[M]) retry(s *scope[M], i *interruption, why string) {
	i.next = s.Now.Add(min(firstDeletionRetry<<min(i.retries, 10), longestDeletionRetry))
	i.retries++
	if why != i.message {
		s.events.Warning(keptEvent, "Replace", "%s", why)
	}
	i.message = why
	s.observed.replaced = why
	r.interrupted.set(s.Key(), *i)
}

// settle notes that nothing more is to be done.
func (r *Reconciler[M]) settle(s *scope[M], i *interruption, result string) {
	interrupted.WithLabelValues(r.Kind, result).Inc()
	i.settled = true
	if result == resultKept {
		s.events.Warning(keptEvent, "Replace", "%s", i.message)
	}
	s.observed.replaced = i.message
	r.interrupted.set(s.Key(), *i)
}
