package machineset

import (
	"context"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// deleteAll deletes all Machines of the set and waits until they are gone: each brings a watch event.
func (r *Reconciler) deleteAll(ctx context.Context, s *scope) outcome.Outcome {
	if err := r.verify(ctx, s); err != nil {
		return outcome.FromError(err)
	}
	plan := ScalePlan{Reason: "the MachineSet is being deleted"}
	for _, machine := range s.machines {
		if machine.DeletionTimestamp.IsZero() {
			plan.Remove = append(plan.Remove, machine)
		}
	}
	end := r.scaleDown(ctx, s, plan).And(r.requeueAfterUnseen(ctx, s)).And(r.requeueAfterSlowDeletion(ctx, s))
	if len(s.machines) > 0 {
		return end.And(outcome.Wait())
	}
	return end
}

// requeueAfterSlowDeletion requeues the set for when the next deletion of a Machine becomes slow.
func (r *Reconciler) requeueAfterSlowDeletion(_ context.Context, s *scope) outcome.Outcome {
	return machines.RequeueAfterSlowDeletion(s.machines, s.Now)
}
