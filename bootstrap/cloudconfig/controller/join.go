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
	"millwright.dev/bootstrap/cloudconfig/nodeaccess"
	"millwright.dev/contracts/controller/outcome"
)

const (
	// DefaultJoinOverdueAfter is the time from the node's Secret, which is written when the provider ID is known, to a join that is
	// overdue. Machines that join take one or two minutes.
	DefaultJoinOverdueAfter = 10 * time.Minute
	// firstLook is when a machine that has not joined is checked for the first time. Most have by then, at no cost.
	firstLook = 2 * time.Minute
)

// joining is what was observed of a machine on its way to its Node.
type joining struct {
	// began is when the machine could begin: when the node's Secret was written.
	began time.Time
	// resumed is when the latest pause ended; zero if there was none.
	resumed time.Time
	// overdueAfter is how long after both the join is overdue: no certificate is approved during a pause.
	overdueAfter time.Duration
	// approved is true when the node's Secret names a request that this provider has approved.
	approved bool
	// request is the latest that the machine has made; nil if none is known.
	request *approval.Outcome
	// report is what the machine has reported; nil if that is nothing.
	report *nodeaccess.Report
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

// nextLook is when there may be a change without an event. The pauses grow with the wait, so that what never comes costs little.
func (j *joining) nextLook(now time.Time) time.Time {
	next := now.Add(max(firstLook-now.Sub(j.began), now.Sub(j.began)/2, time.Minute))
	if at := j.overdueAt(); now.Before(at) && at.Before(next) {
		return at
	}
	return next
}

// followJoin collects how far a machine has come that has not joined. The target cluster is asked only when that takes long.
func (r *Reconciler) followJoin(ctx context.Context, s *scope) outcome.Outcome {
	if s.joined() {
		r.Outcomes.Forget(s.target.Names)
		s.Object.Status.Join = bootstrapv1.JoinStatus{}
		return outcome.Continue()
	}
	j := &joining{began: s.Now, resumed: s.resumed(), overdueAfter: r.JoinOverdueAfter}
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
	if s.Now.Sub(j.began) >= firstLook {
		if err := r.look(ctx, s, j); err != nil {
			return outcome.FromError(err)
		}
	}
	s.joining = j
	if stage, _ := j.stage(s); stage != s.Object.Status.Join.Stage {
		s.Object.Status.Join = bootstrapv1.JoinStatus{Stage: stage, StageStartTime: metav1.NewTime(s.Now.Truncate(time.Second))}
	}
	return outcome.ContinueAfter(s.until(j.nextLook(s.Now)))
}

// resumed is since when the object is not paused.
func (s *scope) resumed() time.Time {
	paused := meta.FindStatusCondition(s.Object.Status.Conditions, bootstrapv1.PausedCondition)
	switch {
	case paused == nil:
		return time.Time{}
	case paused.Status == metav1.ConditionTrue: // Until this reconcile.
		return s.Now
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
	// One that was there before the Machine is not of this machine; the refusal of its certificate request names it.
	if err == nil && !node.CreationTimestamp.Before(&s.machine.CreationTimestamp) {
		j.node = node
	}
	return errors.Wrapf(client.IgnoreNotFound(err), "reading Node %s in the target cluster", s.node())
}
