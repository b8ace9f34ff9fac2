package machineset

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// ensureMetadata adds the finalizer, before any Machine exists, the owner reference to the Cluster, and the defaults of
// admission, so that clients find the same with and without it: the cluster autoscaler reads the number of replicas. A set that
// a MachineDeployment created has all of it from the start.
func (r *Reconciler) ensureMetadata(ctx context.Context, s *scope) outcome.Outcome {
	owners := s.Object.OwnerReferences
	if s.cluster != nil && metav1.GetControllerOf(s.Object) == nil {
		var wait outcome.Outcome
		if owners, wait = machines.OwnedByCluster(ctx, r.APIReader, owners, s.cluster); !wait.Finished() {
			return wait
		}
	}
	return outcome.FromError(s.Patch(ctx, func(set *clusterv1.MachineSet) {
		controllerutil.AddFinalizer(set, clusterv1.MachineSetFinalizer)
		applyDefaults(set)
		set.OwnerReferences = owners
	}))
}

// removeFinalizer lets the API server delete the set, once no Machine is left.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	if !controllerutil.ContainsFinalizer(s.Object, clusterv1.MachineSetFinalizer) {
		// The set waits for finalizers of others.
		return outcome.Continue()
	}
	return outcome.FromError(s.RemoveFinalizer(ctx, clusterv1.MachineSetFinalizer))
}
