package machine

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/core/external"
	"millwright.dev/core/outcome"
)

// deleteInfrastructure deletes the infrastructure object and waits until it is gone, and the machine with it.
func (r *Reconciler) deleteInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	return r.deleteReferenced(ctx, s, &s.infrastructure, clusterv1.MachineDeletingWaitingForInfrastructureDeletionReason)
}

// deleteBootstrap deletes the bootstrap config and waits until it is gone.
func (r *Reconciler) deleteBootstrap(ctx context.Context, s *scope) outcome.Outcome {
	return r.deleteReferenced(ctx, s, &s.bootstrap, clusterv1.MachineDeletingWaitingForBootstrapDeletionReason)
}

// infrastructureGone says whether the infrastructure object does not exist.
func (s *scope) infrastructureGone() bool { return s.infrastructure.gone() }

// gone says whether there is no object behind the reference.
func (r *reference) gone() bool {
	return !r.ref.IsDefined() || apierrors.IsNotFound(r.err) || external.NotInstalled(r.err)
}

func (r *Reconciler) deleteReferenced(ctx context.Context, s *scope, reference *reference, reason string) outcome.Outcome {
	if reference.gone() || reference.found() && controlledByOther(reference.object, s.original) {
		return outcome.Continue()
	}
	s.progress = deletion{reason, "Waiting for the deletion of " + external.Name(reference.ref)}
	if reference.err != nil {
		s.progress.message = external.Problem("", reference.ref, reference.err).Message
		return reference.failed(reference.err)
	}
	if reference.object.GetDeletionTimestamp().IsZero() {
		precondition := client.Preconditions{UID: ptr.To(reference.object.GetUID())}
		err := r.Client.Delete(ctx, reference.object.Unstructured, precondition)
		switch {
		case apierrors.IsNotFound(err):
			return outcome.Continue()
		case err != nil:
			return outcome.Fail(errors.Wrapf(err, "deleting %s of Machine %s", external.Name(reference.ref), s.key()))
		}
		// What has no finalizers goes at once, and the watch will say so; a condition would only flash up.
		s.quiet = reference == &s.bootstrap && len(reference.object.GetFinalizers()) == 0
	}
	return outcome.Wait()
}

// controlledByOther says whether an object belongs to something else than the Machine. It is not deleted with it.
func controlledByOther(obj external.Object, machine *clusterv1.Machine) bool {
	owner := metav1.GetControllerOf(obj)
	return owner != nil && owner.UID != machine.UID && owner.Kind != "MachineSet"
}

// release lets the Machine go.
func (r *Reconciler) release(ctx context.Context, s *scope) outcome.Outcome {
	s.gone = true
	r.drainer.Forget(s.key())
	if !controllerutil.RemoveFinalizer(s.machine, clusterv1.MachineFinalizer) {
		return outcome.Continue()
	}
	if err := r.patchFinalizers(ctx, s, "removing the finalizer of"); err != nil {
		return outcome.Fail(client.IgnoreNotFound(err))
	}
	if len(s.machine.Finalizers) == 0 {
		r.versions.Released(s.machine)
	}
	return outcome.Continue()
}
