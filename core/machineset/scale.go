package machineset

import (
	"context"
	"slices"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
	"millwright.dev/core/safety/rewritten"
)

// scale creates missing Machines or deletes superfluous ones.
func (r *Reconciler) scale(ctx context.Context, s *scope) outcome.Outcome {
	if until := r.expectations.unseenUntil(s.Object.UID); !until.IsZero() && !s.Now.Before(until) {
		// It counts as a replica until the API server is asked.
		if err := r.verify(ctx, s); err != nil {
			return outcome.FromError(err)
		}
	}
	plan := PlanScale(s.Object, s.replicas, s.machines)
	if plan.Create == 0 && len(plan.Remove) == 0 {
		return outcome.Continue()
	}
	if plan.Create > 0 {
		if end := r.holdUp(ctx, s); !end.Finished() {
			return end
		}
	}
	look := r.verify
	if len(plan.Remove) > 0 {
		look = r.confirm
	}
	if err := look(ctx, s); err != nil {
		return outcome.FromError(err)
	}
	// The Machines may be others now, or marked otherwise.
	plan = PlanScale(s.Object, s.replicas, s.machines)
	if plan.Create > 0 && !s.blocked() {
		if err := r.oweReplacements(ctx, s); err != nil {
			return outcome.FromError(err)
		}
		return r.scaleUp(ctx, s, plan)
	}
	return r.scaleDown(ctx, s, plan)
}

// holdUp notes what the preflight checks have against new Machines.
func (r *Reconciler) holdUp(ctx context.Context, s *scope) outcome.Outcome {
	awaited, err := r.preflight(ctx, s)
	if err != nil {
		return outcome.FromError(err)
	}
	if s.syncing {
		return outcome.Wait()
	}
	for _, why := range awaited {
		s.block(why)
	}
	return outcome.FromError(r.awaitAdoption(ctx, s))
}

// blocked reports whether no Machine is created now.
func (s *scope) blocked() bool { return len(s.blockers)+len(s.refusals) > 0 }

func (r *Reconciler) scaleUp(ctx context.Context, s *scope, plan ScalePlan) outcome.Outcome {
	n, because, err := r.bounded(ctx, s, plan.Create)
	if err != nil {
		return outcome.FromError(err)
	}
	var made []*clusterv1.Machine
	if n > 0 {
		made, err = r.create(ctx, s, n)
	}
	end := outcome.Continue()
	if because != "" {
		s.block(because)
		r.warnOnce(ctx, s, tooManyEvent, "ScaleUp", because)
		// No event of this set shows that there is room again.
		end = outcome.ContinueAfter(rewritten.Retry)
	}
	s.machines = append(slices.Clone(s.machines), made...)
	if len(made) > 0 {
		ctrl.LoggerFrom(ctx).Info("Created Machines", "count", len(made), "reason", plan.Reason)
		r.event(s, createdEvent, "ScaleUp", "Created %d Machines (%s): %s", len(made), plan.Reason, machines.ListNames(made))
	}
	return end.And(outcome.FromError(err))
}

func (r *Reconciler) scaleDown(ctx context.Context, s *scope, plan ScalePlan) outcome.Outcome {
	end := outcome.Continue()
	if len(plan.Remove) > 0 && !s.Deleting() {
		if err := r.retire(ctx, s, plan.Remove); err != nil {
			return outcome.FromError(err)
		}
	}
	var removed []*clusterv1.Machine
	for _, machine := range plan.Remove {
		if err := r.remove(ctx, s, machine); err != nil {
			end = end.And(outcome.FromError(err))
			continue
		}
		removed = append(removed, machine)
	}
	s.machines = r.expectations.mark(s.Object.UID, s.machines, s.Now)
	r.warnRejectedDeletion(s, end.Err())
	if len(removed) > 0 {
		ctrl.LoggerFrom(ctx).Info("Deleted Machines", "count", len(removed), "reason", plan.Reason)
		r.event(s, deletedEvent, "ScaleDown", "Deleted %d Machines (%s): %s", len(removed), plan.Reason, machines.ListNames(removed))
	}
	return end
}

// warnRejectedDeletion records once that the API server rejects the deletion of Machines.
func (r *Reconciler) warnRejectedDeletion(s *scope, failure error) {
	refusal := persist.Refusal(failure)
	reported := meta.FindStatusCondition(s.Original.Status.Conditions, clusterv1.MachineSetScalingDownCondition)
	if refusal == "" || reported != nil && strings.Contains(reported.Message, refusal) {
		return
	}
	r.warn(s, deletionRejectedEvent, "ScaleDown", "%s", refusal)
}

// remove deletes a Machine in exactly the version that was read. A Machine that has changed since may have another owner
// or be healthy again, so the next reconcile decides about it.
func (r *Reconciler) remove(ctx context.Context, s *scope, machine *clusterv1.Machine) error {
	target := &clusterv1.Machine{ObjectMeta: metav1.ObjectMeta{Namespace: machine.Namespace, Name: machine.Name}}
	err := r.Client.Delete(ctx, target, client.Preconditions{UID: &machine.UID, ResourceVersion: &machine.ResourceVersion})
	switch {
	case err == nil:
		r.expectations.deleted(s.Object.UID, machine.UID)
		return nil
	case persist.Gone(err):
		r.expectations.gone(s.Object.UID, machine.UID)
		return nil
	}
	if !persist.NotDone(err) {
		r.expectations.invalidate(s.Object.UID)
	}
	return errors.Wrapf(err, "deleting Machine %s", client.ObjectKeyFromObject(machine))
}
