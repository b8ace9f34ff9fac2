package machine

import (
	"context"
	"maps"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/external"
)

// ensureFinalizer keeps the Machine until everything that it stands for is deleted. MachineSets set the finalizer at creation, so
// this writes only for Machines that a user has created; it is written by itself and at once, before anything exists.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	err := s.EnsureFinalizer(ctx, clusterv1.MachineFinalizer)
	switch {
	case persist.Refusal(err) != "":
		s.revert(s.Object, err)
	case err != nil:
		s.skipSave = true
	}
	if persist.Gone(err) {
		// The watch has yet to report it.
		return outcome.Wait()
	}
	return outcome.FromError(err)
}

// ownerLabels are the labels of Machines that something else than the Cluster owns.
var ownerLabels = []string{clusterv1.MachineSetNameLabel, clusterv1.MachinePoolNameLabel, clusterv1.MachineControlPlaneNameLabel}

// clusterRetry is when a Machine is requeued whose Cluster is deleted but still in the cache.
const clusterRetry = time.Second

// adopt sets the cluster label of the Machine and makes the Cluster its owner, unless it has another one. A reference to the Cluster
// with an older API version is updated.
func (r *Reconciler) adopt(ctx context.Context, s *scope) outcome.Outcome {
	if s.Object.Labels[clusterv1.ClusterNameLabel] != s.cluster.Name {
		labels := maps.Clone(s.Object.Labels)
		if labels == nil {
			labels = map[string]string{}
		}
		labels[clusterv1.ClusterNameLabel] = s.cluster.Name
		s.Object.Labels = labels
	}
	if ownedByOther(s.Object) {
		return outcome.Continue()
	}
	reference := metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterv1.ClusterKind, Name: s.cluster.Name, UID: s.cluster.UID,
	}
	for i := range s.Object.OwnerReferences {
		if existing := &s.Object.OwnerReferences[i]; existing.UID == reference.UID {
			existing.APIVersion = reference.APIVersion
			return outcome.Continue()
		}
	}
	live, err := external.Live(ctx, r.APIReader, s.cluster, clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind))
	switch {
	case err != nil:
		return outcome.FromError(err)
	case live == nil:
		// The cache shows a Cluster that no longer exists: with it as its owner the Machine would be deleted as well.
		s.quiet = true
		return outcome.WaitFor(clusterRetry)
	}
	s.Object.OwnerReferences = append(s.Object.OwnerReferences, reference)
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
