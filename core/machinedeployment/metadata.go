package machinedeployment

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// ensureMetadata adds the finalizer, before any set exists, and the label and owner reference of the Cluster.
func (r *Reconciler) ensureMetadata(ctx context.Context, s *scope) outcome.Outcome {
	owners := s.Object.OwnerReferences
	if s.cluster != nil && metav1.GetControllerOf(s.Object) == nil {
		var wait outcome.Outcome
		if owners, wait = machines.OwnedByCluster(ctx, r.APIReader, owners, s.cluster); !wait.Finished() {
			return wait
		}
	}
	return outcome.FromError(s.Patch(ctx, func(deployment *clusterv1.MachineDeployment) {
		controllerutil.AddFinalizer(deployment, clusterv1.MachineDeploymentFinalizer)
		deployment.Labels = with(deployment.Labels, clusterv1.ClusterNameLabel, deployment.Spec.ClusterName)
		deployment.OwnerReferences = owners
		setAutoscalerDefaults(deployment)
	}))
}

// removeFinalizer lets the API server delete the deployment, once no set is left.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	if !controllerutil.ContainsFinalizer(s.Object, clusterv1.MachineDeploymentFinalizer) {
		// The deployment waits for finalizers of others.
		return outcome.Continue()
	}
	return outcome.FromError(s.RemoveFinalizer(ctx, clusterv1.MachineDeploymentFinalizer))
}

// forget drops what is remembered of a deployment that no longer exists.
func (r *Reconciler) forget(deployment types.UID) {
	r.ahead.forget(deployment)
	r.marks.forget(deployment)
	r.rewritten.Forget(deployment)
	r.progress.forget(deployment)
}
