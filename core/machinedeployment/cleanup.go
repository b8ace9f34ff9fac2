package machinedeployment

import (
	"context"

	"github.com/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
)

// complete reports whether the rollout is: all Machines are there, current and available.
func complete(s *scope) bool {
	if s.current == nil || desired(s.current) != s.settings.replicas {
		return false
	}
	all := s.machines[s.current.UID]
	if len(all) != s.settings.replicas || len(s.allMachines()) != len(all) {
		return false
	}
	for _, machine := range all {
		if !machines.Available(machine) {
			return false
		}
	}
	return true
}

// prunable are the sets that have served: outdated and empty, after a rollout that is complete, but for those of the
// latest revisions that are kept as history. A set whose template is the current one is no history.
func prunable(s *scope) []*clusterv1.MachineSet {
	if s.settings.paused || !complete(s) {
		return nil
	}
	var history, sets []*clusterv1.MachineSet
	for _, set := range s.sets {
		switch {
		case set.UID == s.current.UID || !set.DeletionTimestamp.IsZero() || desired(set) > 0 ||
			set.Status.ObservedGeneration != set.Generation:
		case machines.Revision(set) > 0 && len(machines.OutdatedBecause(&s.deployment.Spec.Template, &set.Spec.Template)) > 0:
			history = append(history, set)
		default:
			sets = append(sets, set)
		}
	}
	limit, _ := historyLimit(s.deployment)
	byRevision(history)
	return append(sets, history[min(limit, len(history)):]...)
}

// cleanUp deletes sets that have served and are beyond the history.
func (r *Reconciler) cleanUp(ctx context.Context, s *scope) outcome.Outcome {
	return outcome.FromError(r.deleteSets(ctx, s, prunable(s), "it is outdated, empty and not kept as history"))
}

// deleteAll deletes all sets, and waits until they are gone: each causes a watch event, and is removed only after its
// Machines.
func (r *Reconciler) deleteAll(ctx context.Context, s *scope) outcome.Outcome {
	var living []*clusterv1.MachineSet
	for _, set := range s.sets {
		if set.DeletionTimestamp.IsZero() {
			living = append(living, set)
		}
	}
	if err := r.deleteSets(ctx, s, living, "the MachineDeployment is being deleted"); err != nil {
		return outcome.FromError(err)
	}
	if len(s.sets) > 0 {
		return outcome.Wait()
	}
	unknown, err := r.unknownSets(ctx, s)
	if err != nil {
		return outcome.FromError(err)
	}
	if unknown {
		return untilShown(s)
	}
	return outcome.Continue()
}

// deleteSets deletes sets in exactly the version that was read. The next reconcile decides about one that has changed since.
func (r *Reconciler) deleteSets(ctx context.Context, s *scope, sets []*clusterv1.MachineSet, reason string) error {
	var failures []error
	for _, set := range sets {
		target := &clusterv1.MachineSet{}
		target.Namespace, target.Name = set.Namespace, set.Name
		// The cache may not show yet that it was orphaned.
		preconditions := client.Preconditions{UID: &set.UID, ResourceVersion: &set.ResourceVersion}
		if err := r.Client.Delete(ctx, target, preconditions); persist.IgnoreGone(err) != nil {
			failures = append(failures, errors.Wrapf(err, "deleting MachineSet %s", client.ObjectKeyFromObject(set)))
			continue
		}
		r.decreases.forget(set.UID)
		ctrl.LoggerFrom(ctx).Info("Deleted MachineSet", "MachineSet", set.Name, "reason", reason)
		r.event(s, set, DeletedEvent, "DeleteMachineSet", "Deleted MachineSet %s: %s", set.Name, reason)
	}
	return kerrors.NewAggregate(failures)
}
