package machine

import (
	"context"
	"fmt"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/drain"
	"millwright.dev/core/machines"
)

// volumesInMessage is how many volumes a message names.
const volumesInMessage = 3

func volumesStart(d *clusterv1.MachineDeletionStatus) *metav1.Time {
	return &d.WaitForNodeVolumeDetachStartTime
}

func (s *scope) volumesExcluded() bool {
	return hasAnnotation(s.Object, clusterv1.ExcludeWaitForNodeVolumeDetachAnnotation)
}

// volumesTimeout is how long volumes may take to be detached, not positive for ever. A Machine without a timeout
// has that of the drain, where the Cluster API waits for ever; 0 means no limit with both.
func (s *scope) volumesTimeout() time.Duration {
	if own := s.Object.Spec.Deletion.NodeVolumeDetachTimeoutSeconds; own != nil {
		return time.Duration(*own) * time.Second
	}
	return s.options.drainTimeout()
}

// volumesTimedOut reports whether volumes have been waited for for as long as they may be.
func (s *scope) volumesTimedOut() bool {
	if !s.begun(volumesStart) {
		return false
	}
	rest, limited := remaining(s.Object.Status.Deletion.WaitForNodeVolumeDetachStartTime, s.volumesTimeout(), s.Now)
	return limited && rest <= 0
}

// detachVolumes waits until no volume is attached to the Node any more, so that none is detached from a running machine.
// Volumes of pods that stay are not waited for, nor those of an unreachable Node, which cannot report that it has detached them.
func (r *Reconciler) detachVolumes(_ context.Context, s *scope) outcome.Outcome {
	if s.skipNodeSteps() || s.volumesExcluded() || s.forcedOffVolumes() || s.volumesUnobservable() {
		return outcome.Continue()
	}
	if s.volumesTimedOut() {
		s.timedOut(
			VolumeDetachTimedOutEvent,
			"DetachVolumes",
			fmt.Sprintf("Volumes are still attached to the Node after %s", s.volumesTimeout()),
		)
		return outcome.Continue()
	}
	found := &s.drained.result
	if s.connection != nil && found.VolumesKnown && len(found.Volumes) == 0 {
		return outcome.Continue()
	}
	if s.connection != nil && !found.VolumesKnown && found.VolumesError == "" && found.Age < drainSettling {
		s.quiet = true
		return outcome.WaitFor(drainSettling / 2)
	}
	rest, limited := remaining(s.begin(volumesStart), s.volumesTimeout(), s.Now)
	const reason = clusterv1.MachineDeletingWaitingForVolumeDetachReason
	if s.connection == nil {
		return s.awaitConnection(reason, rest)
	}
	s.progress = deletion{
		reason,
		volumesMessage(s.node.Name, found) + " (" + since(s.Object.Status.Deletion.WaitForNodeVolumeDetachStartTime.Time) + ")",
	}
	end := s.drained.forced.deadline().And(outcome.Wait())
	if limited {
		end = end.And(outcome.WaitFor(rest))
	}
	return end
}

// volumesUnobservable reports whether nothing will report that volumes were detached: the Node is gone or unreachable, or the target
// cluster
// is, and is not waited for.
func (s *scope) volumesUnobservable() bool {
	if s.connection == nil {
		return s.mayTerminateUndrained() || s.clusterGoing() && s.drained.forced.cause != ""
	}
	return s.node == nil || drain.Unreachable(s.node)
}

// forcedOffVolumes reports whether a forced drain ends the wait for volumes, too: when a user wants the machine deleted at
// once, or when a flag has a forced drain detach them.
func (s *scope) forcedOffVolumes() bool {
	forced := s.drained.forced
	return forced.atOnce || forced.cause != "" && s.options.ForceDetach
}

// volumesMessage describes what is waited for.
func volumesMessage(node string, found *drain.Result) string {
	switch {
	case !found.VolumesKnown && found.VolumesError != "":
		return fmt.Sprintf("Waiting for the volumes of Node %s: %s", node, found.VolumesError)
	case !found.VolumesKnown:
		return fmt.Sprintf("Reading the volumes of Node %s", node)
	}
	names := make([]string, 0, len(found.Volumes))
	for _, volume := range found.Volumes {
		names = append(names, volume.String())
	}
	return fmt.Sprintf("Waiting for Node %s to detach %s: %s", node, machines.Plural(len(names), "volume"),
		conditions.ListNames(names, volumesInMessage))
}

// instanceGone reports whether the infrastructure has reported that the instance does not exist any more: its object, which the
// Machine has seen, no longer exists; the contract lets it go only when the instance has. That its kind is not installed, that it
// was never seen, or that it belongs to something else, means nothing about an instance; nor does a Node that is not ready.
func (s *scope) instanceGone() bool {
	reference := &s.infrastructure
	return reference.ref.IsDefined() && apierrors.IsNotFound(reference.err) && s.seen(reference)
}

// mayHoldVolumes reports whether there is a sign that volumes have been left attached. Without one the target cluster is not
// asked.
func (s *scope) mayHoldVolumes() bool {
	return len(s.node.Status.VolumesAttached) > 0 || s.begun(volumesStart) || s.forced().cause != "" || drain.Unreachable(s.node)
}

// detachFromGone deletes the VolumeAttachments of a Node whose instance is gone, so that its volumes can be attached
// elsewhere at once; Kubernetes would wait for minutes. What cannot be deleted within a minute is left to it.
func (r *Reconciler) detachFromGone(ctx context.Context, s *scope) outcome.Outcome {
	if s.connection == nil || s.node == nil || !s.instanceGone() || s.endsWithTarget() || !s.mayHoldVolumes() {
		return outcome.Continue()
	}
	result, err := r.drainer.Step(ctx, drain.Request{
		Key: s.Key(), Cluster: s.connection.Key, Config: s.connection.Config, Node: s.node, Mode: drain.Detach,
	})
	if err != nil {
		return outcome.FromError(errors.Wrapf(err, "detaching the volumes of Node %s of Machine %s", s.node.Name, s.Key()))
	}
	if result.Done {
		return outcome.Continue()
	}
	if result.Age < drainSettling {
		s.quiet = true
		return outcome.WaitFor(drainSettling / 2)
	}
	s.progress = deletion{clusterv1.MachineDeletingDeletingNodeReason, result.Message}
	return outcome.Wait()
}
