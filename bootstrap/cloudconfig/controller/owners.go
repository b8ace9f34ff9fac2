package controller

import (
	"context"
	"fmt"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util"
	"sigs.k8s.io/controller-runtime/pkg/client"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/ownership"
	"millwright.dev/contracts/controller/outcome"
)

// findOwners reads the Machine whose CloudConfig this is, and that Machine's Cluster, if they exist.
func (r *Reconciler) findOwners(ctx context.Context, s *scope) outcome.Outcome {
	machine, err := readOwner(ctx, r.Client, s.Object)
	if err != nil || machine == nil {
		return outcome.FromError(err)
	}
	if s.disowned = ownership.Refuse(s.Object, machine); s.disowned == "" {
		s.machine = machine
	}
	cluster := &clusterv1.Cluster{}
	switch err := r.Client.Get(ctx, clusterKey(machine), cluster); {
	case err == nil:
		s.cluster = cluster
	case !apierrors.IsNotFound(err):
		return outcome.FromError(errors.Wrapf(err, "reading Cluster %s", machine.Spec.ClusterName))
	}
	return outcome.Continue()
}

// readOwner returns the Machine of the name that the CloudConfig's owner reference has, whatever its UID; nil when there is none.
func readOwner(ctx context.Context, reader client.Reader, config *bootstrapv1.CloudConfig) (*clusterv1.Machine, error) {
	reference := ownership.Reference(config)
	if reference == nil {
		return nil, nil
	}
	machine := &clusterv1.Machine{}
	err := reader.Get(ctx, client.ObjectKey{Namespace: config.Namespace, Name: reference.Name}, machine)
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return machine, errors.Wrapf(err, "reading Machine %s", reference.Name)
}

// confirmOwner asks the API server whose the CloudConfig is: the cache may show a Machine that no longer exists, or one as it was before
// it named another bootstrap config.
func (r *Reconciler) confirmOwner(ctx context.Context, s *scope) outcome.Outcome {
	machine, err := readOwner(ctx, r.APIReader, s.Object)
	if err != nil {
		return outcome.FromError(err)
	}
	s.machine = machine
	if machine != nil {
		if s.disowned = ownership.Refuse(s.Object, machine); s.disowned != "" {
			s.machine = nil
		}
	}
	return r.awaitCluster(ctx, s)
}

// awaitCluster waits for what has to exist before anything can be created for the machine. The order is
// that of Cluster API's contract for bootstrap providers.
func (r *Reconciler) awaitCluster(_ context.Context, s *scope) outcome.Outcome {
	switch {
	case s.disowned != "":
		return s.awaits(bootstrapv1.OwnerMismatchReason, s.disowned)
	case s.machine == nil:
		return s.awaits(bootstrapv1.WaitingForOwnerMachineReason,
			"No Machine owns this CloudConfig: name it in spec.bootstrap.configRef of a Machine, whose controller then sets the owner reference")
	case !s.machine.DeletionTimestamp.IsZero():
		return s.awaits(bootstrapv1.DeletingReason,
			fmt.Sprintf("Machine %s is being deleted; its tokens are no longer extended", s.machine.Name))
	case util.IsControlPlaneMachine(s.machine):
		return s.awaits(bootstrapv1.ControlPlaneUnsupportedReason,
			fmt.Sprintf("Machine %s belongs to a control plane; CloudConfig supports workers only: use another bootstrap provider", s.machine.Name))
	case s.cluster == nil:
		return s.awaits(bootstrapv1.WaitingForClusterReason,
			fmt.Sprintf("Cluster %s of Machine %s does not exist: create it or delete the Machine", s.machine.Spec.ClusterName, s.machine.Name))
	case !ptr.Deref(s.cluster.Status.Initialization.InfrastructureProvisioned, false):
		return s.awaits(bootstrapv1.WaitingForInfrastructureReason,
			fmt.Sprintf("Waiting for status.initialization.infrastructureProvisioned of Cluster %s", s.cluster.Name))
	case !ptr.Deref(s.cluster.Status.Initialization.ControlPlaneInitialized, false):
		return s.awaits(bootstrapv1.WaitingForControlPlaneReason,
			fmt.Sprintf("Waiting for status.initialization.controlPlaneInitialized of Cluster %s", s.cluster.Name))
	}
	return outcome.Continue()
}
