package machine

import (
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/outcome"
	"millwright.dev/core/remote"
)

// startUp is how long after the start of the core a connection that has not been tried yet is not reported.
const startUp = 5 * time.Second

// skipNodeSteps says whether drain and volumes are past: when the pre-terminate hooks have been waited for, or
// the infrastructure or the whole control plane is gone or going, there is nothing to be gentle with any more.
func (s *scope) skipNodeSteps() bool {
	going := s.infrastructure.found() && !s.infrastructure.object.GetDeletionTimestamp().IsZero()
	return going || s.infrastructureGone() || s.infrastructure.foreign() || s.endsWithTarget() || s.begun(preTerminateStart)
}

// mayGiveUp says whether a target cluster that cannot be reached need not be waited for: when no Node can be the
// Machine's, when the Cluster is gone, or when it or its control plane is being deleted and nothing has been heard of the
// target for the grace period.
func (s *scope) mayGiveUp() bool {
	if s.nodeless() || s.cluster == nil {
		return true
	}
	return s.targetGoing() && s.disconnection != nil &&
		!s.now.Before(s.disconnection.LastSuccess.Add(s.options.RemoteConditionsGracePeriod))
}

// nodeless says that the Machine has never had a Node, nor a provider ID of its own that one could be known by.
func (s *scope) nodeless() bool {
	return s.unproven()
}

// awaitConnection waits for the connection to the target cluster; rest, when positive, is the time that is left.
func (s *scope) awaitConnection(reason string, rest time.Duration) outcome.Outcome {
	message := "Waiting for the connection to the target cluster"
	end := outcome.Wait()
	if s.ofAnotherCore() {
		message += ": Cluster " + s.cluster.Name + " is labelled for another core than this Machine; label both alike (" + clusterv1.WatchLabel + ")"
	} else if s.disconnection != nil {
		message += ": " + s.disconnection.Message
		if s.targetGoing() {
			end = end.And(outcome.WaitFor(s.disconnection.LastSuccess.Add(s.options.RemoteConditionsGracePeriod).Sub(s.now)))
		}
	}
	s.progress = deletion{reason, message}
	if start := s.startUp(); start > 0 && len(s.told) == 0 && meta.IsStatusConditionTrue(s.original.Status.Conditions, clusterv1.MachineDeletingCondition) {
		// What the core before this one has said stands until the connection is there.
		s.quiet = true
		end = end.And(outcome.WaitFor(start))
	}
	if rest > 0 {
		end = end.And(outcome.WaitFor(rest))
	}
	return end
}

// startUp is how long the first connection of a core that has just started may still take without being reported;
// zero when it may not, or is there.
func (s *scope) startUp() time.Duration {
	if s.disconnection == nil || s.disconnection.Reason != remote.NotDialledYet {
		return 0
	}
	return max(0, s.disconnection.LastSuccess.Add(startUp).Sub(s.now))
}

// timedOut tells about a step of the deletion that was given up.
func (s *scope) timedOut(reason, action, note string) {
	s.tell(corev1.EventTypeWarning, reason, action, note)
}

// begin records that a part of the deletion has begun, unless it had, and returns when.
func (s *scope) begin(field func(*clusterv1.MachineDeletionStatus) *metav1.Time) metav1.Time {
	if s.machine.Status.Deletion == nil {
		s.machine.Status.Deletion = &clusterv1.MachineDeletionStatus{}
	}
	start := field(s.machine.Status.Deletion)
	if start.IsZero() {
		*start = metav1.NewTime(s.now).Rfc3339Copy()
	}
	return *start
}

// begun says whether a part of the deletion has begun.
func (s *scope) begun(field func(*clusterv1.MachineDeletionStatus) *metav1.Time) bool {
	return s.machine.Status.Deletion != nil && !field(s.machine.Status.Deletion).IsZero()
}

// remaining returns how much of a timeout is left since start; limited is false for no timeout, which is nil or 0.
func remaining(start metav1.Time, seconds *int32, now time.Time) (rest time.Duration, limited bool) {
	timeout := time.Duration(ptr.Deref(seconds, 0)) * time.Second
	if timeout == 0 {
		return 0, false
	}
	return start.Add(timeout).Sub(now), true
}

// why is an error in a word that may go into a condition: it stays the same, and tells nothing of the request.
func why(err error) string {
	if reason := apierrors.ReasonForError(err); reason != metav1.StatusReasonUnknown {
		return string(reason)
	}
	return "the API server did not answer"
}

// since is a moment as messages name it.
func since(moment time.Time) string { return "since " + moment.UTC().Format(time.RFC3339) }

// held names those who keep an object from going.
func held(finalizers []string) string {
	sorted := slices.Sorted(slices.Values(finalizers))
	return fmt.Sprintf("%s: %s", counted(len(sorted), "finalizer"), strings.Join(sorted, ", "))
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

func hasAnnotation(m *clusterv1.Machine, key string) bool {
	_, ok := m.Annotations[key]
	return ok
}
