package controller

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/bootstrap/cloudconfig/target"
)

const (
	// DefaultJoinOverdueAfter is the time from the node's Secret, which is written when the provider ID is known, to a join that is
	// overdue. Machines that join take one or two minutes.
	DefaultJoinOverdueAfter = 10 * time.Minute
	// firstLook is when a machine that has not joined is looked at for the first time. Most have by then, at no cost.
	firstLook = 2 * time.Minute
)

// joining is what is known of a machine on its way to its Node.
type joining struct {
	// began is when the machine could begin: when the node's Secret was written.
	began time.Time
	// resumed is when the latest pause ended; zero if there was none.
	resumed time.Time
	// overdueAfter is how long after both the join is overdue: no certificate is approved during a pause.
	overdueAfter time.Duration
	// approved says that the node's Secret names a request that this provider has approved.
	approved bool
	// request is the latest that the machine has made; nil if none is known.
	request *approval.Outcome
	// report is what the machine says; nil if it has said nothing.
	report *target.Report
	// node is the Node of the Machine's name that came after the Machine; nil if there is none.
	node *corev1.Node
}

// overdueAt is when the join is overdue.
func (j *joining) overdueAt() time.Time {
	if j.resumed.After(j.began) {
		return j.resumed.Add(j.overdueAfter)
	}
	return j.began.Add(j.overdueAfter)
}

// nextLook is when there may be news without an event. The pauses grow with the wait, so that what never comes costs little.
func (j *joining) nextLook(now time.Time) time.Time {
	next := now.Add(max(firstLook-now.Sub(j.began), now.Sub(j.began)/2, time.Minute))
	if at := j.overdueAt(); now.Before(at) && at.Before(next) {
		return at
	}
	return next
}

// followJoin collects how far a machine has come that has not joined. The target cluster is asked only when that takes long.
func (r *Reconciler) followJoin(ctx context.Context, s *scope) error {
	if s.joined() {
		r.Outcomes.Forget(s.target.Names)
		s.config.Status.Join = bootstrapv1.JoinStatus{}
		return nil
	}
	j := &joining{began: s.now, resumed: s.resumed(), overdueAfter: r.JoinOverdueAfter}
	if j.overdueAfter == 0 {
		j.overdueAfter = DefaultJoinOverdueAfter
	}
	if s.nodeSecret != nil {
		j.began = s.nodeSecret.CreationTimestamp.Time
		j.approved = s.nodeSecret.Annotations[approval.ApprovedAnnotation] != ""
	}
	if outcome, ok := r.Outcomes.Of(s.target.Names); ok {
		j.request = &outcome
	}
	if s.now.Sub(j.began) >= firstLook {
		if err := r.look(ctx, s, j); err != nil {
			return err
		}
	}
	s.joining = j
	s.wake(j.nextLook(s.now))
	if stage, _ := j.stage(s); stage != s.config.Status.Join.Stage {
		s.config.Status.Join = bootstrapv1.JoinStatus{Stage: stage, StageStartTime: metav1.NewTime(s.now.Truncate(time.Second))}
	}
	return nil
}

// resumed is since when the object is not paused.
func (s *scope) resumed() time.Time {
	paused := meta.FindStatusCondition(s.config.Status.Conditions, bootstrapv1.PausedCondition)
	switch {
	case paused == nil:
		return time.Time{}
	case paused.Status == metav1.ConditionTrue: // Until this reconcile.
		return s.now
	}
	return paused.LastTransitionTime.Time
}

// look asks the target cluster what the machine has reported, and for its Node.
func (r *Reconciler) look(ctx context.Context, s *scope, j *joining) error {
	report, reported, err := s.target.ReadReport(ctx)
	if err != nil {
		return err
	}
	if reported {
		j.report = &report
	}
	node := &corev1.Node{}
	err = s.target.Client.Get(ctx, client.ObjectKey{Name: s.node()}, node)
	// One that was there before the Machine says nothing about this machine; the refusal of its certificate request names it.
	if err == nil && !node.CreationTimestamp.Before(&s.machine.CreationTimestamp) {
		j.node = node
	}
	return errors.Wrapf(client.IgnoreNotFound(err), "reading Node %s in the target cluster", s.node())
}

// reportOverdue counts the join if it is overdue, and records an event when that begins. It follows the write of the status.
func (r *Reconciler) reportOverdue(s *scope, before *bootstrapv1.CloudConfig) {
	r.overdue.follow(s)
	const kind = bootstrapv1.NodeJoinedCondition
	was, is := meta.FindStatusCondition(before.Status.Conditions, kind), meta.FindStatusCondition(s.config.Status.Conditions, kind)
	if is == nil || is.Reason != bootstrapv1.JoinOverdueReason || was != nil && was.Reason == is.Reason {
		return
	}
	r.warn(s.config, is.Reason, "Join", "%s: %s", s.config.Status.Join.Stage, is.Message)
}
