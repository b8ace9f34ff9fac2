package machine

import (
	"errors"
	"fmt"
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
// Machine's, the Cluster is gone and the Machine never had a Node, or the target is being deleted and has been silent for the grace period.
// Upstream does not drain at all once the Cluster is being deleted.
func (s *scope) mayTerminateUndrained() bool {
	if s.cluster == nil {
		return s.nodeless() || !s.Original.Status.NodeRef.IsDefined()
	}
	return s.nodeless() || s.targetGoing() && s.isSilent()
}

// isSilent reports whether nothing has been heard of the target cluster for the grace period.
func (s *scope) isSilent() bool { return s.disconnection != nil && !s.Now.Before(s.silentFrom()) }

// silentFrom is when the grace period of a target cluster that cannot be reached ends.
func (s *scope) silentFrom() time.Time {
	return s.disconnection.LastSuccess.Add(s.options.RemoteConditionsGracePeriod)
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
			end = end.And(outcome.WaitFor(s.silentFrom().Sub(s.Now)))
		}
	}
	if reason == clusterv1.MachineDeletingDrainingNodeReason {
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

// heldUndrained describes how long an instance stays if its Node cannot be drained, if the Cluster does not exist or is being deleted.
func (s *scope) heldUndrained(rest time.Duration) string {
	const remedy = "; to terminate it at once, annotate the Machine with " + ForceDeletionAnnotation + "=true"
	switch {
	case s.cluster == nil && rest > 0:
		return fmt.Sprintf(". Cluster %s does not exist, and the instance stays until %s, as Pods may run on it%s",
			s.Object.Spec.ClusterName, s.Now.Add(rest).UTC().Format(time.RFC3339), remedy)
	case s.cluster == nil:
		return ". Cluster " + s.Object.Spec.ClusterName + " does not exist, and the instance stays, as Pods may run on it" + remedy
	case s.targetGoing() && s.disconnection != nil:
		return fmt.Sprintf(". The target cluster is being deleted: the drain is skipped at %s if it has not answered by then",
			s.silentFrom().UTC().Format(time.RFC3339))
	}
	return ""
}

// startUp is how long the first connection of a core that has just started may still take without being reported;
// zero when it may not, or is there.
func (s *scope) startUp() time.Duration {
	if s.disconnection == nil || s.disconnection.Reason != shared.NotDialledYet {
		return 0
	}
	return max(0, s.disconnection.LastSuccess.Add(startUp).Sub(s.Now))
}
