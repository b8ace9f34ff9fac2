package machineset

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

// ensureMetadata gives the set its finalizer, before any Machine exists, ties it to its Cluster, and fills in the
// defaults of admission, so that clients – the cluster autoscaler reads the number of replicas – find the same with and
// without it. A set that a MachineDeployment made has all of it from the start.
func (r *Reconciler) ensureMetadata(ctx context.Context, s *scope) outcome.Outcome {
	desired := s.set.DeepCopy()
	controllerutil.AddFinalizer(desired, clusterv1.MachineSetFinalizer)
	withDefaults(desired)
	if s.cluster != nil && metav1.GetControllerOf(desired) == nil {
		owners, wait := machines.OwnedByCluster(ctx, r.APIReader, desired.OwnerReferences, s.cluster)
		if !wait.Finished() {
			return wait
		}
		desired.OwnerReferences = owners
	}
	if equality.Semantic.DeepEqual(desired.ObjectMeta, s.set.ObjectMeta) && equality.Semantic.DeepEqual(desired.Spec, s.set.Spec) {
		return outcome.Continue()
	}
	if err := r.Client.Patch(ctx, desired, client.MergeFromWithOptions(s.set, client.MergeFromWithOptimisticLock{})); err != nil {
		return outcome.FromError(errors.Wrapf(err, "patching MachineSet %s", client.ObjectKeyFromObject(s.set)))
	}
	r.Written.Wrote(desired)
	s.set, s.before = desired, desired.DeepCopy()
	return outcome.Continue()
}

// removeFinalizer lets the set go, when no Machine is left.
func (r *Reconciler) removeFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	desired := s.set.DeepCopy()
	if !controllerutil.RemoveFinalizer(desired, clusterv1.MachineSetFinalizer) {
		return outcome.Continue()
	}
	if err := r.Client.Patch(ctx, desired, client.MergeFromWithOptions(s.set, client.MergeFromWithOptimisticLock{})); client.IgnoreNotFound(err) != nil {
		return outcome.FromError(errors.Wrapf(err, "removing the finalizer of MachineSet %s", client.ObjectKeyFromObject(s.set)))
	}
	s.gone = true
	return outcome.Continue()
}
