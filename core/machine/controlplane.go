package machine

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/core/external"
	"millwright.dev/core/index"
)

// controlPlane is what a deletion must know of the control plane of the Cluster.
type controlPlane struct {
	// going is true when the control plane object is deleted or being deleted.
	going bool
	// elsewhere is true when the control plane runs on no Machines, so that none takes the API server with it.
	elsewhere bool
	// last is true for a Machine of the control plane when none of the others stays.
	last bool
	// err is why the control plane object could not be read.
	err error
}

// ofControlPlane reports whether the Machine is one that the API server of the target cluster runs on.
func (s *scope) ofControlPlane() bool {
	_, ok := s.Original.Labels[clusterv1.MachineControlPlaneLabel]
	return ok
}

// targetGoing reports whether the target cluster is being deleted, so that it need not be waited for.
func (s *scope) targetGoing() bool {
	return s.controlPlane.going || s.cluster != nil && !s.cluster.DeletionTimestamp.IsZero()
}

// endsWithTarget reports whether the Machine is one of a control plane that goes as a whole. Its Node is not drained and
// not deleted: the API server that would do it goes with it, maybe in the middle of it.
func (s *scope) endsWithTarget() bool {
	return s.ofControlPlane() && !s.controlPlane.elsewhere && (s.cluster == nil || s.targetGoing() || s.controlPlane.last)
}

// observeControlPlane reads whether the control plane is being deleted. Only Machines of it need that, and those that cannot reach
// the target cluster.
func (r *Reconciler) observeControlPlane(ctx context.Context, s *scope) outcome.Outcome {
	if s.cluster == nil || !s.ofControlPlane() && s.connection != nil {
		return outcome.Continue()
	}
	if err := r.readControlPlane(ctx, s); err != nil || s.controlPlane.elsewhere || !s.ofControlPlane() {
		return outcome.FromError(err)
	}
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Original.Namespace), client.MatchingFields{index.Cluster: s.cluster.Name},
		client.HasLabels{clusterv1.MachineControlPlaneLabel}, client.UnsafeDisableDeepCopy); err != nil {
		return outcome.FromError(errors.Wrapf(err, "listing the control plane Machines of Cluster %s", s.clusterKey()))
	}
	s.controlPlane.last = true
	for i := range list.Items {
		if list.Items[i].Name != s.Original.Name && list.Items[i].DeletionTimestamp.IsZero() {
			s.controlPlane.last = false
		}
	}
	return outcome.Continue()
}

// readControlPlane reads the control plane object, if the Cluster refers to one. One that cannot be read for lack of rights or of a
// contract is assumed to stay; the Cluster's conditions report it.
func (r *Reconciler) readControlPlane(ctx context.Context, s *scope) error {
	if !s.cluster.Spec.ControlPlaneRef.IsDefined() {
		return nil
	}
	object, err := r.Kinds.Get(ctx, s.cluster.Spec.ControlPlaneRef, s.Original.Namespace, s.Request())
	switch {
	case apierrors.IsNotFound(err), external.NotInstalled(err):
		s.controlPlane.going = true
		return nil
	case err != nil:
		s.controlPlane.err = err
		if external.Expected(err) {
			return nil
		}
		return err
	}
	s.controlPlane.going = !object.GetDeletionTimestamp().IsZero()
	// A field of the wrong type is reported by the Cluster, and holds up no deletion.
	elsewhere, err := controlplane.At(object.Contract).ExternallyManaged(object.Unstructured)
	s.controlPlane.elsewhere = err == nil && elsewhere
	return nil
}
