package cluster

import (
	"context"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/infracluster"
	"millwright.dev/core/external"
	"millwright.dev/core/limits"
)

// reconcileInfrastructure mirrors what the infrastructure cluster says. Without a reference there is nothing to
// wait for.
func (r *Reconciler) reconcileInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	if !s.infrastructure.ref.IsDefined() {
		s.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
		return outcome.Continue()
	}
	if end := r.readOwned(ctx, s, &s.infrastructure); !end.Finished() {
		return end
	}
	accessor := infracluster.At(s.infrastructure.object.Contract)
	provisioned, err := accessor.Provisioned(s.infrastructure.object.Unstructured)
	if err != nil {
		return s.infrastructure.failed(err)
	}
	if provisioned {
		s.cluster.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	}
	endpoint, err := accessor.ControlPlaneEndpoint(s.infrastructure.object.Unstructured)
	if err != nil {
		return s.infrastructure.failed(err)
	}
	endpoint, wrongEndpoint := limits.Endpoint(endpoint)
	if !s.cluster.Spec.ControlPlaneEndpoint.IsValid() && endpoint.IsValid() {
		s.cluster.Spec.ControlPlaneEndpoint = endpoint
	}
	domains, err := accessor.FailureDomains(s.infrastructure.object.Unstructured)
	if err != nil {
		return s.infrastructure.failed(err)
	}
	var wrongDomains []string
	s.cluster.Status.FailureDomains, wrongDomains = limits.FailureDomains(domains)
	s.infrastructure.problems = slices.Concat(wrongEndpoint, wrongDomains)
	return outcome.Continue()
}

// readOwned reads the object behind a reference and makes the Cluster its controller.
func (r *Reconciler) readOwned(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	reference.object, reference.err = r.Kinds.Get(ctx, reference.ref, s.cluster.Namespace, s.request())
	if reference.err != nil {
		return reference.failed(reference.err)
	}
	err := external.Own(ctx, r.Client, r.APIReader, reference.object, s.cluster, kindCluster, s.cluster.Name)
	if err != nil {
		return reference.failed(err)
	}
	return outcome.Continue()
}

// failed remembers why the object behind the reference could not be used. What an event will end is waited for,
// the rest is a failure.
func (r *reference) failed(err error) outcome.Outcome {
	if apierrors.IsConflict(err) {
		// A race that was lost says nothing about the object.
		return outcome.FromError(err)
	}
	r.err = err
	if external.Expected(err) {
		return outcome.Wait()
	}
	return outcome.FromError(err)
}
