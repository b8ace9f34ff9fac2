package cluster

import (
	"context"

	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controlplane"
	"millwright.dev/core/limits"
)

// reconcileControlPlane mirrors what the control plane object says, when the Cluster refers to one.
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
		s.cluster.Status.Initialization.ControlPlaneInitialized = ptr.To(true)
	}
	endpoint, err := accessor.ControlPlaneEndpoint(s.controlPlane.object.Unstructured)
	if err != nil {
		return s.controlPlane.failed(err)
	}
	endpoint, s.controlPlane.problems = limits.Endpoint(endpoint)
	if !s.cluster.Spec.ControlPlaneEndpoint.IsValid() && endpoint.IsValid() {
		s.cluster.Spec.ControlPlaneEndpoint = endpoint
	}
	if s.cluster.Status.ControlPlane, err = accessor.Replicas(s.controlPlane.object.Unstructured); err != nil {
		return s.controlPlane.failed(err)
	}
	if counted := s.cluster.Status.ControlPlane; counted != nil {
		var wrong []string
		counted.Versions, wrong = limits.Versions(counted.Versions)
		s.controlPlane.problems = append(s.controlPlane.problems, wrong...)
	}
	return outcome.Continue()
}
