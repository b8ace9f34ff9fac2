package machine

import (
	"context"
	"maps"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/external"
)

// ensureFinalizer keeps the Machine from going before what it stands for. MachineSets set it at creation, so this
// writes only for Machines that were made by hand; it is written by itself and at once, before anything exists.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	if !controllerutil.AddFinalizer(s.machine, clusterv1.MachineFinalizer) {
		return outcome.Continue()
	}
	return outcome.FromError(r.patchFinalizers(ctx, s, "adding the finalizer of"))
}

// patchFinalizers writes the finalizers alone, and takes over what the server answers.
func (r *Reconciler) patchFinalizers(ctx context.Context, s *scope, what string) error {
	patched := s.original.DeepCopy()
	patched.Finalizers = s.machine.Finalizers
	patch := client.MergeFromWithOptions(s.original, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, patched, patch); err != nil {
		return errors.Wrapf(err, "%s Machine %s", what, s.key())
	}
	r.versions.Wrote(patched)
	s.original = patched
	s.machine.ObjectMeta = *patched.ObjectMeta.DeepCopy()
	return nil
}

// ownerLabels are the labels that say that something else than the Cluster owns the Machine.
var ownerLabels = []string{clusterv1.MachineSetNameLabel, clusterv1.MachinePoolNameLabel, clusterv1.MachineControlPlaneNameLabel}

// clusterRetry is when a Machine is looked at again whose Cluster the cache shows as it was.
const clusterRetry = time.Second

// adopt puts the cluster label on the Machine and makes the Cluster its owner, if it is nobody else's. A reference to
// the Cluster that names an older API version is brought up to date.
func (r *Reconciler) adopt(ctx context.Context, s *scope) outcome.Outcome {
	if s.machine.Labels[clusterv1.ClusterNameLabel] != s.cluster.Name {
		labels := maps.Clone(s.machine.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[clusterv1.ClusterNameLabel] = s.cluster.Name
		s.machine.Labels = labels
	}
	if ownedByOther(s.machine) {
		return outcome.Continue()
	}
	reference := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: s.cluster.Name, UID: s.cluster.UID,
	}
	for i := range s.machine.OwnerReferences {
		if existing := &s.machine.OwnerReferences[i]; existing.UID == reference.UID {
			existing.APIVersion = reference.APIVersion
			return outcome.Continue()
		}
	}
	live, err := external.Live(ctx, r.APIReader, s.cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))
	switch {
	case err != nil:
		return outcome.FromError(err)
	case live == nil:
		// The cache shows a Cluster that is gone: with it as its owner the Machine would be deleted as well.
		s.quiet = true
		return outcome.WaitFor(clusterRetry)
	}
	s.machine.OwnerReferences = append(s.machine.OwnerReferences, reference)
	return outcome.Continue()
}

func ownedByOther(m *clusterv1.Machine) bool {
	for _, label := range ownerLabels {
		if _, ok := m.Labels[label]; ok {
			return true
		}
	}
	return metav1.GetControllerOf(m) != nil
}
