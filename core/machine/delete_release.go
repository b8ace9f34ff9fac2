package machine

import (
	"context"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

// release removes the finalizer, now that nothing is left of the Machine. A Machine with finalizers of others stays, in the phase
// Deleted.
func (r *Reconciler) release(ctx context.Context, s *scope) outcome.Outcome {
	r.drainer.Forget(s.Key())
	before := !s.unfinalized()
	if err := s.RemoveFinalizer(ctx, clusterv1.MachineFinalizer); err != nil {
		refusal := persist.Refusal(err)
		s.skipSave = refusal == ""
		s.progress = deletion{clusterv1.MachineDeletingInternalErrorReason, "Everything of the machine is deleted, but the API server refuses to remove the finalizer: " + refusal}
		return outcome.FromError(err)
	}
	if !s.unfinalized() {
		// The object is gone already.
		return outcome.Continue()
	}
	if before {
		s.events.Normal(DeletedEvent, "Delete", "%s", r.deleted(s))
		s.events.Record(r.Recorder, s.Original)
		r.drains.forget(s.Key())
	}
	if others := s.Original.Finalizers; len(others) > 0 {
		s.Gone = false
		s.progress = deletion{
			clusterv1.MachineDeletingDeletionCompletedReason,
			"Everything of the machine is deleted; the object still has " + listFinalizers(others),
		}
		return outcome.Wait()
	}
	return outcome.Continue()
}
