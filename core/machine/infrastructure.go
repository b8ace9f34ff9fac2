package machine

import (
	"context"
	"fmt"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/field"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/limits"
)

// reconcileInfrastructure observes the infrastructure object until the machine is provisioned, and copies what
// it reports. Once observed, provisioned stays; the provider ID of an object that was recreated counts when that is provisioned.
func (r *Reconciler) reconcileInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	if end := r.observeOwned(ctx, s, &s.infrastructure); !end.Finished() {
		return end
	}
	obj, accessor := s.infrastructure.object.Unstructured, inframachine.At(s.infrastructure.object.Contract)
	provisioned, err := accessor.Provisioned(obj)
	if err != nil {
		return s.infrastructure.failed(err)
	}
	if !provisioned {
		id, err := accessor.ProviderID(obj)
		if err != nil {
			return s.infrastructure.failed(err)
		}
		if id != s.Object.Spec.ProviderID || !ptr.Deref(s.Object.Status.Initialization.InfrastructureProvisioned, false) {
			// The machine is not there yet, or not again: then its object was recreated.
			s.infrastructure.recreated = true
			return outcome.Wait()
		}
	}
	if err := s.copyInfrastructure(accessor); err != nil {
		return s.infrastructure.failed(err)
	}
	s.Object.Status.Initialization.InfrastructureProvisioned = ptr.To(true)
	return outcome.Continue()
}

// copyInfrastructure copies provider ID, addresses and failure domain from the infrastructure object to the Machine. A
// machine that is provisioned without a provider ID could never be found among the Nodes, so that is an error.
func (s *scope) copyInfrastructure(accessor inframachine.Accessor) error {
	obj := s.infrastructure.object.Unstructured
	id, err := providerIDOf(accessor, obj)
	if err == nil && id == "" {
		err = providerIDError(obj, "set when the machine is provisioned", "empty")
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
	s.infrastructureRead = true
	s.Object.Spec.ProviderID = id
	s.keep(addresses, domain, chosen)
	return nil
}

// keep takes over what the API of Machines accepts, and records the rest: the API would refuse all for one invalid value.
func (s *scope) keep(addresses clusterv1.MachineAddresses, domain, chosen string) {
	addresses, invalidAddresses := limits.Addresses(addresses)
	domain, invalidDomain := limits.FailureDomain("failureDomain", domain)
	chosen, _ = limits.FailureDomain("spec.failureDomain", chosen)
	if chosen != "" {
		s.Object.Spec.FailureDomain = chosen
	}
	s.Object.Status.Addresses = addresses
	s.Object.Status.FailureDomain = domain
	s.infrastructure.invalidFields = slices.Concat(invalidAddresses, invalidDomain)
}

// providerIDOf reads the provider ID, which is an error when the API of Machines does not accept it: without it the
// Machine has no Node.
func providerIDOf(accessor inframachine.Accessor, obj *unstructured.Unstructured) (string, error) {
	id, err := accessor.ProviderID(obj)
	if length := utf8.RuneCountInString(id); err == nil && length > limits.MaxProviderID {
		return "", providerIDError(obj, fmt.Sprintf("of %d characters at most", limits.MaxProviderID), fmt.Sprintf("one of %d", length))
	}
	return id, err
}

func providerIDError(obj *unstructured.Unstructured, want, got string) error {
	return &field.TypeError{Object: obj.GetKind() + " " + obj.GetName(), Path: field.Path{"spec", "providerID"}, Want: want, Got: got}
}

// observeInfrastructure only reads the infrastructure object, for a Machine that is being deleted. A provider ID and addresses
// that had not been copied yet are kept, so that the Node is found even when the object is gone. They are only those of an object
// which the Machine controls: one without a controlling owner is deleted, and what it reports does not count.
func (r *Reconciler) observeInfrastructure(ctx context.Context, s *scope) outcome.Outcome {
	end := r.observeLeaving(ctx, s, &s.infrastructure)
	if !s.infrastructure.own {
		return end
	}
	observed := observedOf(s.Object, s.infrastructure.object, nil, true)
	if observed.providerID != "" && (observed.provisioned || !ptr.Deref(s.Object.Status.Initialization.InfrastructureProvisioned, false)) {
		s.Object.Spec.ProviderID = observed.providerID
		s.keepAddresses()
	}
	return end
}

// keepAddresses takes over the addresses of a machine that leaves: the host names among them are by what its Node is known. An object
// that loses them with its machine has had them.
func (s *scope) keepAddresses() {
	accessor := inframachine.At(s.infrastructure.object.Contract)
	reported, err := accessor.Addresses(s.infrastructure.object.Unstructured)
	if reported, _ = limits.Addresses(reported); err == nil && len(reported) > 0 {
		s.Object.Status.Addresses = reported
	}
}

// unrecorded reports whether the infrastructure object, which is about to be deleted, has reported what the Machine does not record yet and
// the Node is found by.
func (s *scope) unrecorded() bool {
	return s.Object.Spec.ProviderID != s.Original.Spec.ProviderID ||
		!slices.Equal(s.Object.Status.Addresses, s.Original.Status.Addresses)
}
