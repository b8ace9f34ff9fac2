package machine

import (
	"errors"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/core/remote"
)

// answerSettling is how long a request that the target cluster has not answered yet is not reported: normally that
// is over in a moment.
const answerSettling = 2 * time.Second

// soonAnswered reports whether an error means no more than that a request to the target cluster was sent a moment ago, and how
// to wait then; the answer itself enqueues the Machine.
func (s *scope) soonAnswered(err error) (end outcome.Outcome, soon bool) {
	var closed *shared.NotConnectedError
	if errors.As(err, &closed) {
		// The loss of the connection is an event of its own.
		s.quiet = s.events.Empty()
		return outcome.Wait(), true
	}
	pending := unanswered(err)
	if pending == nil {
		return outcome.Continue(), false
	}
	rest := pending.Since.Add(answerSettling).Sub(s.Now)
	if rest <= 0 {
		return outcome.Continue(), false
	}
	s.quiet = s.events.Empty()
	return outcome.WaitFor(rest), true
}

// unanswered returns what the target cluster has not answered, nil when the error is another one.
func unanswered(err error) *remote.PendingError {
	var pending *remote.PendingError
	errors.As(err, &pending)
	return pending
}

// startUp is how long after the start of the core a connection that has not been tried yet is not reported.
const startUp = 5 * time.Second

// mayGiveUp reports whether a target cluster that cannot be reached need not be waited for to delete the Node: when no Node can be the
// Machine's, when the Cluster no longer exists, or when it or its control plane is being deleted and nothing has been heard of the
// target for the grace period.
func (s *scope) mayGiveUp() bool {
	return s.nodeless() || s.cluster == nil || s.targetGoing() && s.isSilent()
}

// mayTerminateUndrained reports whether the instance may be terminated although the target cluster cannot be reached: no Node can be the
// Machine's, the Cluster is gone and the Machine never had a Node, or the control plane is deleted with the Cluster. If the Cluster has no
// controlPlaneRef, its control plane and Pods run on, so the drain is awaited until its timeout.
func (s *scope) mayTerminateUndrained() bool {
	if s.cluster == nil {
		return s.nodeless() || !s.Original.Status.NodeRef.IsDefined()
	}
	return s.nodeless() || s.cluster.Spec.ControlPlaneRef.IsDefined() && s.targetGoing() && s.isSilent()
}

// isSilent reports whether nothing has been heard of the target cluster for the grace period.
func (s *scope) isSilent() bool {
	return s.disconnection != nil && !s.Now.Before(s.disconnection.LastSuccess.Add(s.options.RemoteConditionsGracePeriod))
}

// clusterGoing reports whether the Cluster does not exist, or is being deleted.
func (s *scope) clusterGoing() bool { return s.cluster == nil || !s.cluster.DeletionTimestamp.IsZero() }

// nodeless reports whether the Machine has never had a Node, nor a provider ID of its own that one could be known by.
func (s *scope) nodeless() bool {
	return s.unproven()
}

// awaitConnection waits for the connection to the target cluster; rest, when positive, is the time that is left.
func (s *scope) awaitConnection(reason string, rest time.Duration) outcome.Outcome {
	message := "Waiting for the connection to the target cluster"
	end := outcome.Wait()
	if s.ofAnotherCore() {
		message += ": Cluster " + s.cluster.Name + " is labelled for another core than this Machine; " +
			"label both alike (" + clusterv1.WatchLabel + ")"
	} else if s.disconnection != nil {
		message += ": " + s.disconnection.Message
		if s.targetGoing() {
			end = end.And(outcome.WaitFor(s.disconnection.LastSuccess.Add(s.options.RemoteConditionsGracePeriod).Sub(s.Now)))
		}
	}
	if s.clusterGoing() && reason == clusterv1.MachineDeletingDrainingNodeReason {
		message += s.heldUndrained(rest)
	}
	s.progress = deletion{reason, message}
	if start := s.startUp(); start > 0 && s.events.Empty() &&
		meta.IsStatusConditionTrue(s.Original.Status.Conditions, clusterv1.MachineDeletingCondition) {
		// What the previous core has reported stays until the connection is established.
		s.quiet = true
		end = end.And(outcome.WaitFor(start))
	}
	if rest > 0 {
		end = end.And(outcome.WaitFor(rest))
	}
	return end
}

// heldUndrained describes how long an instance stays if its Node cannot be drained.
func (s *scope) heldUndrained(rest time.Duration) string {
	cause := ". Its Cluster is being deleted"
	if s.cluster == nil {
		cause = ". Cluster " + s.Object.Spec.ClusterName + " does not exist"
	}
	until := "until the drain timeout"
	if rest > 0 {
		until = "until " + s.Now.Add(rest).UTC().Format(time.RFC3339)
	}
	return cause + ", and the instance stays " + until + ", as Pods may run on it; to terminate it at once, annotate the Machine with " +
		ForceDeletionAnnotation + "=true"
}

// startUp is how long the first connection of a core that has just started may still take without being reported;
// zero when it may not, or is there.
func (s *scope) startUp() time.Duration {
	if s.disconnection == nil || s.disconnection.Reason != shared.NotDialledYet {
		return 0
	}
	return max(0, s.disconnection.LastSuccess.Add(startUp).Sub(s.Now))
}
