package machine

import (
	"context"

	"k8s.io/utils/ptr"

	"millwright.dev/contracts/field"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/outcome"
)

// reconcileInfrastructure follows the infrastructure object until the machine is provisioned, and copies what
// it says about it. Once seen, provisioned stays.
func (r *Reconciler) reconcileInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	if end := r.observeOwned(ctx, s, &s.infrastructure); !end.Finished() {
		return end
	}
	obj, accessor := s.infrastructure.object.Unstructured, inframachine.At(s.infrastructure.object.Contract)
	provisioned, err := accessor.Provisioned(obj)
	if err != nil {
		return s.infrastructure.failed(err)
	}
	if !provisioned && !ptr.Deref(s.machine.Status.Initialization.InfrastructureProvisioned, false) {
		return outcome.Wait()
	}
	if err := s.copyFacts(accessor); err != nil {
		return s.infrastructure.failed(err)
	}
	s.machine.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return outcome.Continue()
}

// copyFacts copies provider ID, addresses and failure domain from the infrastructure object to the Machine. A
// machine that is provisioned without a provider ID could never be found among the Nodes, so that is an error.
func (s *scope) copyFacts(accessor inframachine.Accessor) error {
	obj := s.infrastructure.object.Unstructured
	id, err := accessor.ProviderID(obj)
	if err == nil && id == "" {
		err = &field.TypeError{Object: obj.GetKind() + " " + obj.GetName(), Path: field.Path{"spec", "providerID"}, Want: "set when the machine is provisioned", Got: "empty"}
	}
	if err != nil {
		return err
	}
	addresses, err := accessor.Addresses(obj)
	if err != nil {
		return err
	}
	domain, err := accessor.FailureDomain(obj)
	if err != nil {
		return err
	}
	if s.interruptible, err = accessor.Interruptible(obj); err != nil {
		return err
	}
	chosen, err := accessor.ChosenFailureDomain(obj)
	if err != nil {
		return err
	}
	s.machine.Spec.ProviderID = id
	if chosen != "" {
		s.machine.Spec.FailureDomain = chosen
	}
	s.machine.Status.Addresses = addresses
	s.machine.Status.FailureDomain = domain
	return nil
}

// observeInfrastructure only reads the infrastructure object, for a Machine that is being deleted. A provider ID
// that had not been copied yet is kept, so that the Node is found even when the object has gone.
func (r *Reconciler) observeInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	end := r.observe(ctx, s, &s.infrastructure)
	if s.infrastructure.err != nil || s.machine.Spec.ProviderID != "" || !s.infrastructure.found() {
		return end
	}
	id, err := inframachine.At(s.infrastructure.object.Contract).ProviderID(s.infrastructure.object.Unstructured)
	if err == nil {
		s.machine.Spec.ProviderID = id
	}
	return end
}
