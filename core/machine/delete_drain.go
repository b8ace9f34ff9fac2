package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/drain"
)

// drainSettling is how long a drain is not reported that is still reading the pods and volumes of the Node: that
// is over in a moment, when a deletion begins and when the core has been restarted.
const drainSettling = 2 * time.Second

func drainStart(d *clusterv1.MachineDeletionStatus) *metav1.Time { return &d.NodeDrainStartTime }

func preTerminateStart(d *clusterv1.MachineDeletionStatus) *metav1.Time {
	return &d.WaitForPreTerminateHookStartTime
}

// drained is what the drain step hands to the step of the volumes.
type drained struct {
	result drain.Result
	// forced is whether the drain is a forced one, so that volumes are not waited for, and when it will be.
	forced forcing
}

// drainNode cordons the Node and evicts its pods, until none is left that must be waited for. When time is up, or
// a user asks for it, the drain is forced: it takes a minute at most, whatever delays it.
func (r *Reconciler) drainNode(ctx context.Context, s *scope) outcome.Outcome {
	excluded := hasAnnotation(s.Object, clusterv1.ExcludeNodeDrainingAnnotation)
	if s.ofAnotherCore() {
		// That one connects to the target cluster now. The drain of this one has a connection of its own, and ends.
		r.drainer.Forget(s.Key())
		s.connection = nil
	}
	gone := s.connection != nil && s.node == nil
	if s.instanceGone() && !gone && s.skipNodeSteps() {
		// What is left to do of its volumes comes after this.
		return outcome.Continue()
	}
	if s.skipNodeSteps() || gone || s.volumesTimedOut() || excluded && s.volumesExcluded() {
		r.drainer.Forget(s.Key())
		return outcome.Continue()
	}
	if !excluded {
		s.begin(drainStart)
	}
	forced := s.forced()
	s.drained.forced = forced
	if s.connection == nil {
		return s.drainWithoutConnection(excluded, forced)
	}
	switch {
	case excluded && s.forcedOffVolumes():
		r.drainer.Forget(s.Key())
		return outcome.Continue()
	case excluded:
		return r.stepDrain(ctx, s, drain.Observe, forced)
	case forced.cause != "":
		return r.stepDrain(ctx, s, drain.Forced, forced)
	default:
		return r.stepDrain(ctx, s, drain.Normal, forced)
	}
}

// drainWithoutConnection waits for the target cluster, unless nothing is to be drained or the drain is forced.
func (s *scope) drainWithoutConnection(excluded bool, forced forcing) outcome.Outcome {
	if excluded || forced.cause != "" {
		return outcome.Continue()
	}
	if s.mayTerminateUndrained() {
		if s.Original.Status.NodeRef.IsDefined() && s.disconnection != nil {
			s.timedOut(DrainSkippedEvent, "Drain", fmt.Sprintf("Node %s is not drained: its cluster is being deleted, and has not answered since %s",
				s.Original.Status.NodeRef.Name, s.disconnection.LastSuccess.UTC().Format(time.RFC3339)))
		}
		return outcome.Continue()
	}
	return s.awaitConnection(clusterv1.MachineDeletingDrainingNodeReason, forced.rest)
}

// stepDrain advances the drain and reports what is left.
func (r *Reconciler) stepDrain(ctx context.Context, s *scope, mode drain.Mode, forced forcing) outcome.Outcome {
	rules, invalid, err := r.drainRules(ctx, s)
	if err != nil {
		return outcome.FromError(err)
	}
	request := drain.Request{
		Key:         s.Key(),
		Cluster:     s.connection.Key,
		Config:      s.connection.Config,
		Node:        s.node,
		Mode:        mode,
		Rules:       rules,
		ForceDetach: s.options.ForceDetach,
	}
	var began time.Time
	if s.begun(drainStart) {
		began = s.Object.Status.Deletion.NodeDrainStartTime.Time
	}
	result, err := r.drainer.Step(ctx, request)
	if err != nil {
		return outcome.FromError(errors.Wrapf(err, "draining Node %s of Machine %s", s.node.Name, s.Key()))
	}
	s.drained.result = result
	if result.ForcedNow {
		r.Recorder.Eventf(s.Original, nil, corev1.EventTypeWarning, DrainForcedEvent, "Drain",
			"Node %s is drained by force: %s", s.node.Name, forced.cause)
	}
	switch {
	case mode == drain.Observe, result.Done:
		if result.Done && mode != drain.Observe {
			r.finishDrain(s, began, result)
		}
		// Its pods stay watched until the machine itself goes (skipNodeSteps): a step after this one may
		// wait, and each reconcile of the Machine meanwhile would read the pods again.
		return outcome.Continue()
	case !result.Listed && result.Age < drainSettling:
		s.quiet = true
		return outcome.WaitFor(drainSettling / 2)
	}
	message := result.Message + " (" + since(began)
	if forced.cause != "" {
		message += "; " + forced.cause
	}
	s.progress = deletion{clusterv1.MachineDeletingDrainingNodeReason, message + ")" + describeInvalid(invalid)}
	return forced.deadline().And(outcome.Wait())
}
