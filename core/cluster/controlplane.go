package cluster

import (
	"context"

	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/core/limits"
)

// reconcileControlPlane mirrors the control plane object, when the Cluster refers to one.
func (r *Reconciler) reconcileControlPlane(ctx context.Context, s *scope) outcome.Outcome {
	if !s.controlPlane.ref.IsDefined() {
		return outcome.Continue()
	}
	if end := r.readOwned(ctx, s, &s.controlPlane); !end.Finished() {
		return end
	}
	accessor := controlplane.At(s.controlPlane.object.Contract)
	initialized, err := accessor.Initialized(s.controlPlane.object.Unstructured)
	if err != nil {
		return s.controlPlane.failed(err)
	}
	if initialized {
		s.Object.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	endpoint, err := accessor.ControlPlaneEndpoint(s.controlPlane.object.Unstructured)
	if err != nil {
		return s.controlPlane.failed(err)
	}
	endpoint, s.controlPlane.invalidFields = limits.Endpoint(endpoint)
	if !s.Object.Spec.ControlPlaneEndpoint.IsValid() && endpoint.IsValid() {
		s.Object.Spec.ControlPlaneEndpoint = endpoint
	}
	if s.Object.Status.ControlPlane, err = accessor.Replicas(s.controlPlane.object.Unstructured); err != nil {
		return s.controlPlane.failed(err)
	}
	if status := s.Object.Status.ControlPlane; status != nil {
		var invalid []string
		status.Versions, invalid = limits.Versions(status.Versions)
		s.controlPlane.invalidFields = append(s.controlPlane.invalidFields, invalid...)
	}
	return outcome.Continue()
}
