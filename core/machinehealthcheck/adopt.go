package machinehealthcheck

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/external"
)

var clusterKind = clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind)

// adopt labels a MachineHealthCheck with the name of its Cluster, and has it deleted and moved with that.
func (r *Reconciler) adopt(ctx context.Context, s *scope) outcome.Outcome {
	if s.Object.Labels == nil {
		s.Object.Labels = map[string]string{}
	}
	s.Object.Labels[clusterv1.ClusterNameLabel] = s.Object.Spec.ClusterName
	owners := slices.DeleteFunc(slices.Clone(s.Object.OwnerReferences), func(o metav1.OwnerReference) bool {
		return o.Kind == clusterKind.Kind && o.Name == s.cluster.Name && o.UID != s.cluster.UID
	})
	if slices.ContainsFunc(owners, func(o metav1.OwnerReference) bool { return o.UID == s.cluster.UID }) {
		return outcome.Continue()
	}
	live, err := external.Live(ctx, r.APIReader, s.cluster, clusterKind)
	if err != nil || live == nil {
		// The garbage collector would delete what is owned by a Cluster that no longer exists.
		return outcome.FromError(err)
	}
	s.Object.OwnerReferences = append(owners, metav1.OwnerReference{
		APIVersion: clusterv1.GroupVersion.String(), Kind: clusterKind.Kind, Name: s.cluster.Name, UID: s.cluster.UID,
	})
	return outcome.Continue()
}
