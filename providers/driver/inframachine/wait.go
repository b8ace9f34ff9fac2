package inframachine

import (
	"context"
	"fmt"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// checkFailure ends the work on a machine that has failed permanently: it is never launched again, and
// its instance is left alone until the object is deleted.
func (r *Reconciler[M]) checkFailure(_ context.Context, s *scope[M]) outcome.Outcome {
	if !s.Object.CommonStatus().HasFailed() {
		return outcome.Continue()
	}
	r.inventory.Forget(s.Key())
	return outcome.Wait()
}

// awaitOwner waits for a Machine that owns the object and refers to it.
func (r *Reconciler[M]) awaitOwner(_ context.Context, s *scope[M]) outcome.Outcome {
	if s.handle.ProviderID != "" {
		return outcome.Continue()
	}
	message := ""
	switch {
	case s.owner == nil:
		message = "No Machine owns this object. The Machine controller sets the owner reference; " +
			"a Machine must name this object in spec.infrastructureRef"
	case !r.refersTo(s.owner, s):
		message = fmt.Sprintf("The owner, Machine %s, refers to %s %s in spec.infrastructureRef: correct the reference or the owner",
			s.owner.Name, s.owner.Spec.InfrastructureRef.Kind, s.owner.Spec.InfrastructureRef.Name)
	case !s.owner.DeletionTimestamp.IsZero():
		message = fmt.Sprintf("Machine %s is being deleted: no instance is launched for it", s.owner.Name)
	default:
		return outcome.Continue()
	}
	s.observed.state = &explanation{driverv1.WaitingForOwnerMachineReason, message}
	return outcome.Wait()
}

// refersTo returns whether the Machine's infrastructureRef is this object.
func (r *Reconciler[M]) refersTo(machine *clusterv1.Machine, s *scope[M]) bool {
	ref := machine.Spec.InfrastructureRef
	return ref.Kind == r.Kind && ref.Name == s.Key().Name && ref.APIGroup == r.group
}

// awaitCluster waits for the Cluster and its infrastructure.
func (r *Reconciler[M]) awaitCluster(_ context.Context, s *scope[M]) outcome.Outcome {
	if s.handle.ProviderID != "" {
		return outcome.Continue()
	}
	if s.cluster == nil {
		s.observed.state = &explanation{driverv1.WaitingForClusterReason,
			fmt.Sprintf("Cluster %s does not exist in this namespace", s.clusterName)}
		return outcome.Wait()
	}
	if provisioned := s.cluster.Status.Initialization.InfrastructureProvisioned; provisioned == nil || !*provisioned {
		s.observed.state = &explanation{driverv1.WaitingForClusterInfrastructureReason,
			fmt.Sprintf("Cluster %s has no status.initialization.infrastructureProvisioned yet", s.cluster.Name)}
		return outcome.Wait()
	}
	return outcome.Continue()
}
