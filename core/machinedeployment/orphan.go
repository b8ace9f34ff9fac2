package machinedeployment

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/external"
)

// orphan releases all sets of a deployment that is deleted with --cascade=orphan, as the garbage collector does too: they and
// their Machines stay.
func (r *Reconciler) orphan(ctx context.Context, s *scope) outcome.Outcome {
	if !controllerutil.ContainsFinalizer(s.deployment, metav1.FinalizerOrphanDependents) {
		return outcome.Continue()
	}
	end := outcome.Continue()
	for _, set := range slices.Clone(s.sets) {
		end = end.And(r.release(ctx, s, set, "the MachineDeployment is deleted without it"))
	}
	return end
}

// release gives up the ownership of a set.
func (r *Reconciler) release(ctx context.Context, s *scope, set *clusterv1.MachineSet, reason string) outcome.Outcome {
	released := set.DeepCopy()
	released.OwnerReferences = slices.DeleteFunc(released.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return reference.UID == s.deployment.UID
	})
	// It kept the set from replacing what a user deletes, while the deployment did.
	delete(released.Annotations, clusterv1.DisableMachineCreateAnnotation)
	if err := r.own(ctx, set, released); persist.IgnoreGone(err) != nil {
		return outcome.FromError(err)
	}
	s.sets = slices.DeleteFunc(s.sets, func(other *clusterv1.MachineSet) bool { return other.UID == set.UID })
	r.event(s, released, ReleasedEvent, "Release", "Released MachineSet %s: %s", set.Name, reason)
	return outcome.Continue()
}

// lives asks the API server whether the deployment exists and is not being deleted: the cache may not show yet that it is deleted
// and its sets were orphaned. Whatever it adopted then would be deleted with it.
func (r *Reconciler) lives(ctx context.Context, deployment *clusterv1.MachineDeployment) (bool, error) {
	found, err := external.Live(ctx, r.APIReader, deployment, deploymentKind)
	return found != nil && found.DeletionTimestamp.IsZero(), err
}
