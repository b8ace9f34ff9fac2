package cluster

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/infracluster"
	"millwright.dev/core/external"
	"millwright.dev/core/limits"
)

// reconcileInfrastructure mirrors the infrastructure cluster. Without a reference there is nothing to wait for.
func (r *Reconciler) reconcileInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	if !s.infrastructure.ref.IsDefined() {
		s.Object.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
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
		s.Object.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	}
	endpoint, err := accessor.ControlPlaneEndpoint(s.infrastructure.object.Unstructured)
	if err != nil {
		return s.infrastructure.failed(err)
	}
	endpoint, invalidEndpoint := limits.Endpoint(endpoint)
	if !s.Object.Spec.ControlPlaneEndpoint.IsValid() && endpoint.IsValid() {
		s.Object.Spec.ControlPlaneEndpoint = endpoint
	}
	domains, err := accessor.FailureDomains(s.infrastructure.object.Unstructured)
	if err != nil {
		return s.infrastructure.failed(err)
	}
	var invalidDomains []string
	s.Object.Status.FailureDomains, invalidDomains = limits.FailureDomains(domains)
	s.infrastructure.invalidFields = slices.Concat(invalidEndpoint, invalidDomains)
	return outcome.Continue()
}

// readOwned reads the object of a reference and makes the Cluster its controlling owner.
func (r *Reconciler) readOwned(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	reference.object, reference.err = r.Kinds.Get(ctx, reference.ref, s.Object.Namespace, s.Request())
	if reference.err != nil {
		return reference.failed(reference.err)
	}
	err := external.Own(ctx, r.Client, r.APIReader, reference.object, s.Object, kindCluster, s.Object.Name)
	if err != nil {
		return reference.failed(err)
	}
	return outcome.Continue()
}

// failed records why the object of the reference cannot be used. What an event will end is waited for, the rest is a failure.
func (r *reference) failed(err error) outcome.Outcome {
	if persist.LostRace(err) {
		// A lost race means nothing about the object.
		return outcome.FromError(err)
	}
	if persist.Denied(err) {
		// The code of a denial may be that of an object that does not exist: only its words count.
		r.err = errors.New(err.Error())
		return outcome.FromError(err)
	}
	r.err = err
	if external.Expected(err) {
		return outcome.Wait()
	}
	return outcome.FromError(err)
}
