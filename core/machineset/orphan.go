package machineset

import (
	"context"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/external"
	"millwright.dev/core/machines"
)

// orphan releases all Machines of a set that is deleted with --cascade=orphan, as the garbage collector does too: they
// stay.
func (r *Reconciler) orphan(ctx context.Context, s *scope) outcome.Outcome {
	if !controllerutil.ContainsFinalizer(s.Object, metav1.FinalizerOrphanDependents) {
		return outcome.Continue()
	}
	if err := r.verify(ctx, s); err != nil {
		return outcome.FromError(err)
	}
	end := outcome.Continue()
	for _, machine := range slices.Clone(s.machines) {
		r.release(ctx, s, machine, "the MachineSet is deleted without it", &end)
	}
	return end
}

// release gives up the ownership of a Machine.
func (r *Reconciler) release(ctx context.Context, s *scope, machine *clusterv1.Machine, reason string, end *outcome.Outcome) {
	released := machine.DeepCopy()
	released.OwnerReferences = slices.DeleteFunc(released.OwnerReferences, func(reference metav1.OwnerReference) bool {
		return reference.UID == s.Object.UID
	})
	delete(released.Annotations, AdoptedAnnotation)
	if r.claimed(ctx, s, machine, released, end) {
		s.machines = slices.DeleteFunc(slices.Clone(s.machines), func(m *clusterv1.Machine) bool { return m.UID == machine.UID })
		r.warnAbout(s, machine, releasedEvent, "Release", "Released Machine %s: %s. It stays until you delete it. "+
			"If you keep it, label it %s=%s: no MachineSet adopts it then, and it does not count as created by this one",
			machine.Name, reason, machines.CreatorLabel, machines.NoCreator)
	}
}

// lives asks the API server whether the set exists and is not being deleted: the cache may not show yet that it is deleted
// and its Machines were orphaned. Whatever it adopted then would be deleted with it.
func (r *Reconciler) lives(ctx context.Context, s *scope) (bool, error) {
	found, err := external.Live(ctx, r.APIReader, s.Object, setKind)
	return found != nil && found.DeletionTimestamp.IsZero(), err
}
