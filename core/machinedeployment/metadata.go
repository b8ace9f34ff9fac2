package machinedeployment

import (
	"context"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// ensureMetadata gives the deployment its finalizer, before any set exists, and ties it to its Cluster.
func (r *Reconciler) ensureMetadata(ctx context.Context, s *scope) outcome.Outcome {
	desired := s.deployment.DeepCopy()
	controllerutil.AddFinalizer(desired, clusterv1.MachineDeploymentFinalizer)
	desired.Labels = with(desired.Labels, clusterv1.ClusterNameLabel, desired.Spec.ClusterName)
	if s.cluster != nil && metav1.GetControllerOf(desired) == nil {
		owners, wait := machines.OwnedByCluster(ctx, r.APIReader, desired.OwnerReferences, s.cluster)
		if !wait.Finished() {
			return wait
		}
		desired.OwnerReferences = owners
	}
	openForAutoscaler(desired)
	if equality.Semantic.DeepEqual(desired.ObjectMeta, s.deployment.ObjectMeta) &&
		equality.Semantic.DeepEqual(desired.Spec, s.deployment.Spec) {
		return outcome.Continue()
	}
	if err := r.Client.Patch(ctx, desired, client.MergeFromWithOptions(s.deployment, client.MergeFromWithOptimisticLock{})); err != nil {
		return outcome.FromError(errors.Wrapf(err, "patching the metadata of MachineDeployment %s", client.ObjectKeyFromObject(s.deployment)))
	}
	r.written.Wrote(desired)
	s.deployment, s.before = desired, desired.DeepCopy()
	return outcome.Continue()
}

// removeFinalizer lets the deployment go, when no set is left.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	desired := s.deployment.DeepCopy()
	if !controllerutil.RemoveFinalizer(desired, clusterv1.MachineDeploymentFinalizer) {
		return outcome.Continue()
	}
	if err := r.Client.Patch(ctx, desired, client.MergeFromWithOptions(s.deployment, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return outcome.FromError(errors.Wrapf(err, "removing the finalizer of MachineDeployment %s", client.ObjectKeyFromObject(s.deployment)))
	}
	s.gone = true
	r.ahead.forget(s.deployment.UID)
	r.marks.forget(s.deployment.UID)
	r.progress.forget(s.deployment.UID)
	return outcome.Continue()
}
