package machines

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/external"
)

var clusterKind = clusterv1.GroupVersion.WithKind("Cluster")

// clusterRetry is when an object is reconciled again whose Cluster the cache shows as it was.
const clusterRetry = time.Second

// OwnedByCluster returns the references with the Cluster among them, or waits for the cache when the API server has that
// Cluster no more. It asks the API server only when there is something to change.
func OwnedByCluster(
	ctx context.Context, apiReader client.Reader, references []metav1.OwnerReference, cluster *clusterv1.Cluster,
) ([]metav1.OwnerReference, outcome.Outcome) {
	owners := WithOwner(references, ClusterReference(cluster))
	if slices.Equal(owners, references) {
		return references, outcome.Continue()
	}
	live, err := external.Live(ctx, apiReader, cluster, clusterKind)
	switch {
	case err != nil:
		return nil, outcome.FromError(err)
	case live == nil:
		return nil, outcome.WaitFor(clusterRetry)
	}
	return owners, outcome.Continue()
}

// ClusterReference is the owner reference to a Cluster; it is not that of a controller.
func ClusterReference(cluster *clusterv1.Cluster) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: clusterKind.GroupVersion().String(),
		Kind:       clusterKind.Kind,
		Name:       cluster.Name,
		UID:        cluster.UID,
	}
}

// WithOwner returns the references with this owner among them, in place of an earlier one of the same kind and
// name, whose UID or API version may be outdated.
func WithOwner(references []metav1.OwnerReference, owner metav1.OwnerReference) []metav1.OwnerReference {
	for i, reference := range references {
		if sameGroup(reference, owner) && reference.Kind == owner.Kind && reference.Name == owner.Name {
			result := slices.Clone(references)
			owner.Controller, owner.BlockOwnerDeletion = reference.Controller, reference.BlockOwnerDeletion
			result[i] = owner
			return result
		}
	}
	return append(slices.Clone(references), owner)
}

func sameGroup(a, b metav1.OwnerReference) bool {
	groupA, errA := schema.ParseGroupVersion(a.APIVersion)
	groupB, errB := schema.ParseGroupVersion(b.APIVersion)
	return errA == nil && errB == nil && groupA.Group == groupB.Group
}
