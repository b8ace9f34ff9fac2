package machinedeployment

import (
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// choose finds the current set, and requeues for when rollout.after asks for another one.
func (r *Reconciler) choose(_ context.Context, s *scope) outcome.Outcome {
	s.current = chooseCurrent(s)
	r.checkTemplates(s)
	if s.current == nil && len(s.sets) > 0 {
		s.outdated = whyOutdated(s, s.sets[len(s.sets)-1])
	}
	if after, now := s.deployment.Spec.Rollout.After, rolloutTime(s); !after.IsZero() && now.Before(after.Time) {
		return outcome.ContinueAfter(after.Sub(now))
	}
	return outcome.Continue()
}

// roll plans the numbers of replicas, and writes them together with the fields that reach existing sets: one
// patch for each set that differs.
func (r *Reconciler) roll(ctx context.Context, s *scope) outcome.Outcome {
	plan, known := r.confirm(ctx, s, makePlan(r.look(s)))
	if !known.Finished() {
		return known
	}
	if _, until := unsettledMachines(s); !until.IsZero() {
		return outcome.ContinueAfter(until.Sub(s.Now)).And(r.apply(ctx, s, plan))
	}
	return r.apply(ctx, s, plan)
}

// apply writes what was planned. The current set is created before others shrink: if that fails, or a policy prevents it, they are scaled
// down as while the rollout is paused, since nothing would take the place of other Machines.
func (r *Reconciler) apply(ctx context.Context, s *scope, plan plan) outcome.Outcome {
	end := outcome.Continue()
	if plan.create {
		if end = r.createSet(ctx, s, plan); s.stale {
			return end
		}
		if s.current == nil {
			v := r.look(s)
			v.paused = true
			plan = makePlan(v)
			plan.scale = slices.DeleteFunc(plan.scale, func(step intent) bool { return step.to > step.from })
		}
	}
	intents := map[string]intent{}
	for _, intent := range plan.scale {
		intents[intent.set] = intent
	}
	var failures []error
	for i, set := range s.sets {
		if !set.DeletionTimestamp.IsZero() {
			continue
		}
		desired, err := r.applyToSet(ctx, s, set, intents)
		if err != nil {
			failures = append(failures, err)
			continue
		}
		s.sets[i] = desired
		if s.current != nil && s.current.UID == desired.UID {
			s.current = desired
		}
	}
	return end.And(outcome.FromError(kerrors.NewAggregate(failures)))
}

// look makes the planner's view.
func (r *Reconciler) look(s *scope) view {
	v := Rollout{Sets: s.sets, Current: s.current, Machines: s.machines, Reserve: r.decreases.reserve}.view(s.settings)
	unsettled, _ := unsettledMachines(s)
	v.unknown = len(unsettled) > 0
	return v
}

// unsettledMachines returns the outdated Machines of which it is not known yet whether they serve, as they were restored or adopted a short
// time ago, and until when that is so without an event.
func unsettledMachines(s *scope) (unsettled []*clusterv1.Machine, until time.Time) {
	for _, set := range s.sets {
		if s.current != nil && s.current.UID == set.UID {
			continue
		}
		for _, machine := range s.machines[set.UID] {
			settled := machines.UnsettledUntil(machine, s.Now)
			if settled.IsZero() {
				continue
			}
			if unsettled = append(unsettled, machine); settled.After(until) {
				until = settled
			}
		}
	}
	return unsettled, until
}

// applyToSet brings one set up to date and returns it as it is now. The patch has no version: nothing else
// writes these fields, and the set's own controller writes the status all the time.
func (r *Reconciler) applyToSet(
	ctx context.Context,
	s *scope,
	set *clusterv1.MachineSet,
	intents map[string]intent,
) (*clusterv1.MachineSet, error) {
	changed := set.DeepCopy()
	revision := int64(0)
	if s.current != nil && s.current.UID == set.UID {
		revision = currentRevision(s.deployment, s.sets, s.current)
	}
	synchronizeSet(changed, s.deployment, revision)
	scale, scaled := intents[set.Name]
	if err := r.removeMachines(ctx, s, set, scale); err != nil {
		return nil, err
	}
	if scaled {
		changed.Spec.Replicas = ptr.To(int32(scale.to))
	}
	if equality.Semantic.DeepEqual(set, changed) || (!scaled && resting(s, set)) {
		return set, nil
	}
	if err := r.Client.Patch(ctx, changed, client.MergeFrom(set)); err != nil {
		return nil, errors.Wrapf(err, "updating MachineSet %s", client.ObjectKeyFromObject(set))
	}
	r.Sets.Wrote(changed)
	if scaled {
		r.decreases.note(changed, scale.from, scale.to)
		ctrl.LoggerFrom(ctx).Info("Scaled MachineSet", "MachineSet", set.Name, "from", scale.from, "to", scale.to, "reason", scale.reason)
		if turns(s, scale) {
			r.event(s, changed, ScaledEvent, "Scale",
				"Scaled MachineSet %s from %d to %d: %s", set.Name, scale.from, scale.to, scale.reason)
		}
	}
	return changed, nil
}

// turns reports whether a step is worth an event of the deployment: all but those between the ends of a rollout, which
// are as many as Machines. How far it is, is in the condition RollingOut, and each set records events about its Machines.
func turns(s *scope, step intent) bool {
	between := slices.ContainsFunc(s.sets, func(set *clusterv1.MachineSet) bool { return set.Name != step.set && desired(set) > 0 })
	return !between || step.to == 0 || step.to == s.settings.replicas
}

// resting reports whether a set is only kept as history: it is brought up to date when it is taken again.
func resting(s *scope, set *clusterv1.MachineSet) bool {
	return desired(set) == 0 && len(s.machines[set.UID]) == 0 && (s.current == nil || s.current.UID != set.UID)
}
