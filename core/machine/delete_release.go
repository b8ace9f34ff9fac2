package machine

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
)

// release lets the Machine go, now that nothing is left of it. A Machine that others hold stays, in the phase Deleted.
func (r *Reconciler) release(ctx context.Context, s *scope) outcome.Outcome {
	s.gone = true
	r.drainer.Forget(s.key())
	if controllerutil.RemoveFinalizer(s.machine, clusterv1.MachineFinalizer) {
		if err := r.patchFinalizers(ctx, s, "removing the finalizer of"); err != nil {
			if refusal := persist.Refusal(err); refusal != "" {
				s.gone = false
				s.machine.Finalizers = s.original.Finalizers
				s.progress = deletion{clusterv1.MachineDeletingInternalErrorReason, "Nothing is left of the machine, but the object stays: " + refusal}
			}
			return outcome.FromError(client.IgnoreNotFound(err))
		}
		s.recordEvent(corev1.EventTypeNormal, ReasonDeleted, "Delete", r.deleted(s))
		r.sendEvents(s)
		s.events = nil
		r.drains.forget(s.key())
	}
	if others := s.machine.Finalizers; len(others) > 0 {
		s.gone = false
		s.progress = deletion{clusterv1.MachineDeletingDeletionCompletedReason, "Nothing is left of the machine, but the object has " + held(others)}
		return outcome.Wait()
	}
	r.versions.Released(s.machine)
	return outcome.Continue()
}
