package machine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/drain"
	"millwright.dev/core/outcome"
)

// drainSettling is how long after the deletion of a Machine nothing is said about a drain that is still reading the
// pods of the Node.
const drainSettling = 2 * time.Second

func drainStart(d *clusterv1.MachineDeletionStatus) *metav1.Time { return &d.NodeDrainStartTime }

func preTerminateStart(d *clusterv1.MachineDeletionStatus) *metav1.Time {
	return &d.WaitForPreTerminateHookStartTime
}

// drainNode cordons the Node and evicts its pods, until none is left that must be waited for, or time is up.
func (r *Reconciler) drainNode(ctx context.Context, s *scope) outcome.Outcome {
	if s.skipNodeSteps() || hasAnnotation(s.machine, clusterv1.ExcludeNodeDrainingAnnotation) {
		r.drainer.Forget(s.key())
		return outcome.Continue()
	}
	if s.connection == nil && s.mayGiveUp() {
		return outcome.Continue()
	}
	if s.connection != nil && s.node == nil {
		r.drainer.Forget(s.key())
		return outcome.Continue()
	}
	start := s.begin(drainStart)
	rest, limited := remaining(start, s.machine.Spec.Deletion.NodeDrainTimeoutSeconds, s.now)
	if limited && rest <= 0 {
		s.timedOut("DrainTimedOut", "Drain", "The Node could not be drained within spec.deletion.nodeDrainTimeoutSeconds; the pods left end with the machine")
		r.drainer.Forget(s.key())
		return outcome.Continue()
	}
	if s.connection == nil {
		return s.awaitConnection(clusterv1.MachineDeletingDrainingNodeReason, rest)
	}
	return r.stepDrain(ctx, s, rest)
}

// stepDrain moves the drain on and reports what is left.
func (r *Reconciler) stepDrain(ctx context.Context, s *scope, rest time.Duration) outcome.Outcome {
	result, err := r.drainer.Step(ctx, drain.Request{
		Key: s.key(), Cluster: s.clusterKey(), Config: s.connection.Config, Node: s.node,
	})
	if err != nil {
		return outcome.Fail(errors.Wrapf(err, "draining Node %s of Machine %s", s.node.Name, s.key()))
	}
	if result.Done {
		// Its pods stay watched until the machine itself goes (skipNodeSteps): a step after this one may
		// wait, and each look at the Machine meanwhile would read the pods anew.
		return outcome.Continue()
	}
	if !result.Listed && s.now.Sub(s.original.DeletionTimestamp.Time) < drainSettling {
		// The pods are known in a moment, and the drain of an empty Node is over then.
		s.quiet = true
		return outcome.WaitFor(drainSettling / 2)
	}
	s.progress = deletion{clusterv1.MachineDeletingDrainingNodeReason, result.Message}
	if s.progress.message == "" {
		s.progress.message = "Draining Node " + s.node.Name
	}
	end := outcome.Wait()
	if !result.NextDeadline.IsZero() {
		end = end.And(outcome.WaitFor(result.NextDeadline.Sub(s.now)))
	}
	if rest > 0 {
		end = end.And(outcome.WaitFor(rest))
	}
	return end
}

// skipNodeSteps says whether drain and volumes are past: when the pre-terminate hooks have been waited for, or
// the infrastructure is gone or going, there is nothing to be gentle with any more.
func (s *scope) skipNodeSteps() bool {
	going := s.infrastructure.found() && !s.infrastructure.object.GetDeletionTimestamp().IsZero()
	return going || s.infrastructureGone() || s.begun(preTerminateStart)
}

// mayGiveUp says whether a target cluster that cannot be reached need not be waited for: the Cluster is gone, or
// it is being deleted and nothing has been heard of the target for the grace period.
func (s *scope) mayGiveUp() bool {
	if s.cluster == nil {
		return true
	}
	return !s.cluster.DeletionTimestamp.IsZero() && s.disconnection != nil &&
		!s.now.Before(s.disconnection.LastSuccess.Add(s.options.RemoteConditionsGracePeriod))
}

// awaitConnection waits for the connection to the target cluster; rest, when positive, is the time that is left.
func (s *scope) awaitConnection(reason string, rest time.Duration) outcome.Outcome {
	message := "Waiting for the connection to the target cluster"
	end := outcome.Wait()
	if s.disconnection != nil {
		message += ": " + s.disconnection.Message
		if s.cluster != nil && !s.cluster.DeletionTimestamp.IsZero() {
			end = end.And(outcome.WaitFor(s.disconnection.LastSuccess.Add(s.options.RemoteConditionsGracePeriod).Sub(s.now)))
		}
	}
	s.progress = deletion{reason, message}
	if rest > 0 {
		end = end.And(outcome.WaitFor(rest))
	}
	return end
}

// timedOut tells about a step of the deletion that was given up.
func (s *scope) timedOut(reason, action, note string) {
	s.tell(corev1.EventTypeWarning, reason, action, note)
}

// remaining returns how much of a timeout is left since start; limited is false for no timeout, which is nil or 0.
func remaining(start metav1.Time, seconds *int32, now time.Time) (rest time.Duration, limited bool) {
	timeout := time.Duration(ptr.Deref(seconds, 0)) * time.Second
	if timeout == 0 {
		return 0, false
	}
	return start.Add(timeout).Sub(now), true
}

func hasAnnotation(m *clusterv1.Machine, key string) bool {
	_, ok := m.Annotations[key]
	return ok
}
