package machine

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/core/drain"
	"millwright.dev/core/outcome"
)

// instanceGone says whether the infrastructure has said that the instance does not exist any more: its object, which the
// Machine has seen, is gone; the contract lets it go only when the instance has. That its kind is not installed, that it
// was never seen, or that it belongs to something else, says nothing about an instance; nor does a Node that is not ready.
func (s *scope) instanceGone() bool {
	reference := &s.infrastructure
	return reference.ref.IsDefined() && apierrors.IsNotFound(reference.err) && s.seen(reference)
}

// mayHoldVolumes says whether there is a sign that volumes have been left attached. Without one the target cluster is not
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
		Key: s.key(), Cluster: s.connection.Key, Config: s.connection.Config, Node: s.node, Mode: drain.Detach,
	})
	if err != nil {
		return outcome.Fail(errors.Wrapf(err, "detaching the volumes of Node %s of Machine %s", s.node.Name, s.key()))
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
