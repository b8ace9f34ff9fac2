package machineset

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
	"millwright.dev/core/remediation"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch

// remediate deletes the Machines that failed their health check, as many at once as the limits allow; others are created when
// they are gone. None is deleted that could not be replaced. What is replaced is recorded before it is deleted.
func (r *Reconciler) remediate(ctx context.Context, s *scope) outcome.Outcome {
	end := r.settleReplacements(ctx, s).And(r.endRemediation(ctx, s))
	key := s.Key()
	unhealthy := remediation.Due(s.Object, s.machines)
	if len(unhealthy) == 0 {
		r.forSlots.remove(key)
		return end
	}
	if missing := s.missingDeployment(); missing != "" {
		r.forSlots.remove(key)
		s.held.add(notReplaceableReason, missing, len(unhealthy))
		return end.And(r.setOwnerRemediated(ctx, s, unhealthy, deferredBecause([]string{missing})))
	}
	outdated := !ofCurrentRevision(s)
	if outdated && !replacedOnDelete(s.deployment) {
		r.forSlots.remove(key)
		left := notOfCurrentRevision(s.deployment)
		s.held.add(left.Reason, left.Message, len(unhealthy))
		return end.And(r.setOwnerRemediated(ctx, s, unhealthy, left))
	}
	// What is recorded by now concerns all Machines.
	blockers := slices.Clone(s.blockers)
	if outdated {
		// Not this set makes up for its Machines, but the current one.
		blockers = pausedRollout(s.deployment)
	} else if s.Object.Annotations[clusterv1.DisableMachineCreateAnnotation] == "true" {
		blockers = append(blockers, "the annotation "+clusterv1.DisableMachineCreateAnnotation+" disables the creation of Machines: remove it")
	}
	awaited, err := r.preflight(ctx, s)
	if err != nil {
		return end.And(outcome.FromError(err))
	}
	if s.syncing {
		return end
	}
	if blockers = append(blockers, awaited...); len(blockers) > 0 {
		r.forSlots.remove(key)
		s.held.add(notReplaceableReason, machines.List("No Machine could be created:", blockers), len(unhealthy))
		return end.And(r.setOwnerRemediated(ctx, s, unhealthy, deferredBecause(blockers)))
	}
	return end.And(r.remediateWithin(ctx, s, unhealthy, outdated))
}

// endRemediation takes the condition OwnerRemediated from Machines that are healthy again.
func (r *Reconciler) endRemediation(ctx context.Context, s *scope) outcome.Outcome {
	end := outcome.Continue()
	for _, machine := range recovered(s.machines) {
		written, err := r.patchStatus(ctx, machine, func(status *clusterv1.MachineStatus) {
			meta.RemoveStatusCondition(&status.Conditions, clusterv1.MachineOwnerRemediatedCondition)
		})
		s.replaceMachines([]*clusterv1.Machine{written})
		end = end.And(outcome.FromError(err))
	}
	return end
}

// remediateWithin deletes those Machines that the decider lets go, and sets OwnerRemediated of the others.
func (r *Reconciler) remediateWithin(ctx context.Context, s *scope, unhealthy []*clusterv1.Machine, outdated bool) outcome.Outcome {
	// The set joins the waitlist before it looks, so that no event is missed.
	r.forSlots.await(s.Key(), s.Object.Namespace)
	decision, failure := r.decide(ctx, s, unhealthy, outdated)
	attempted := r.slots.Attempt(s.clusterKey(), remediation.GroupOf(s.Object), decision, r.Clock)
	defer attempted()
	if len(decision.Results) == 0 {
		return outcome.FromError(failure)
	}
	byName := make(map[string]*clusterv1.Machine, len(unhealthy))
	for _, machine := range unhealthy {
		byName[machine.Name] = machine
	}
	var granted, blocked []remediation.Result
	for _, result := range decision.Results {
		if result.Allowed() {
			granted = append(granted, result)
		} else {
			blocked = append(blocked, result)
		}
	}
	deferred := s.hold(blocked, byName)
	s.held.numbers = decision.Numbers(len(unhealthy))
	end := r.replace(ctx, s, granted, byName, attempted).And(outcome.FromError(failure))
	if len(deferred) == 0 && end.Err() == nil {
		r.forSlots.remove(s.Key())
	}
	for message, waiting := range deferred {
		end = end.And(r.setOwnerRemediated(ctx, s, waiting, ownerRemediated(clusterv1.MachineSetMachineRemediationDeferredReason, message)))
	}
	if !decision.Next.IsZero() {
		end = end.And(outcome.ContinueAfter(max(decision.Next.Sub(s.Now), time.Second)))
	}
	return end
}

// hold notes which Machines are not replaced now, and returns them by what is to be reported of them.
func (s *scope) hold(blocked []remediation.Result, byName map[string]*clusterv1.Machine) map[string][]*clusterv1.Machine {
	deferred := map[string][]*clusterv1.Machine{}
	for _, result := range blocked {
		s.held.add(result.Blocker.Reason, result.Blocker.Message, 1)
		deferred[result.Blocker.Message] = append(deferred[result.Blocker.Message], byName[result.Name])
	}
	return deferred
}

// replace records what is replaced, sets OwnerRemediated of the Machines and deletes them.
func (r *Reconciler) replace(
	ctx context.Context,
	s *scope,
	granted []remediation.Result,
	byName map[string]*clusterv1.Machine,
	attempted func(),
) outcome.Outcome {
	if len(granted) == 0 {
		return outcome.Continue()
	}
	// Until it is recorded, nothing that is read ends the places that were granted.
	err := r.record(ctx, s, granted)
	attempted()
	if err != nil {
		return r.unrecorded(ctx, s, granted, byName, err)
	}
	end := outcome.Continue()
	var doomed, marked []*clusterv1.Machine
	for _, result := range granted {
		doomed = append(doomed, byName[result.Name])
	}
	doomed, failures := r.preserveFailed(ctx, s, doomed)
	end = end.And(outcome.FromError(kerrors.NewAggregate(failures)))
	for _, machine := range doomed {
		changed, err := r.patchOwnerRemediated(ctx, s, machine, remediationBegun())
		if err != nil {
			end = end.And(outcome.FromError(err))
			continue
		}
		marked = append(marked, changed)
	}
	s.replaceMachines(marked)
	end = end.And(r.scaleDown(ctx, s, ScalePlan{Remove: marked, Reason: "a health check has found them unhealthy"}))
	refused := 0
	for _, result := range granted {
		if machine := s.named(result.Name); machine != nil && machine.DeletionTimestamp.IsZero() {
			refused++
			continue
		}
		replacements.WithLabelValues(s.clusterKey().String(), replacementReasons.of(result.Reason)).Inc()
	}
	if refusal := persist.Refusal(end.Err()); refusal != "" && refused > 0 {
		s.held.add(notReplaceableReason, "Its replacement is refused: "+refusal, refused)
	}
	return end
}

// unrecorded gives back the places of Machines whose replacement could not be recorded: none of them is deleted.
func (r *Reconciler) unrecorded(
	ctx context.Context,
	s *scope,
	granted []remediation.Result,
	byName map[string]*clusterv1.Machine,
	err error,
) outcome.Outcome {
	var waiting []*clusterv1.Machine
	for _, result := range granted {
		if result.First && persist.NotDone(err) {
			r.slots.Release(s.clusterKey(), remediation.GroupOf(s.Object), result.Name)
		}
		waiting = append(waiting, byName[result.Name])
	}
	end := outcome.FromError(err)
	if refusal := persist.Refusal(err); refusal != "" {
		message := "Not replaced: cannot record the replacement: " + refusal
		s.held.add(notReplaceableReason, message, len(waiting))
		end = end.And(r.setOwnerRemediated(ctx, s, waiting, ownerRemediated(clusterv1.MachineSetMachineRemediationDeferredReason, message)))
	}
	return end
}

// named is the Machine of that name; nil when there is none.
func (s *scope) named(name string) *clusterv1.Machine {
	for _, machine := range s.machines {
		if machine.Name == name {
			return machine
		}
	}
	return nil
}

// setOwnerRemediated writes the same condition to several Machines, where they do not have it. It may be many that one failure of
// a network has hit.
func (r *Reconciler) setOwnerRemediated(ctx context.Context, s *scope, machines []*clusterv1.Machine, what condition) outcome.Outcome {
	end := outcome.Continue()
	for batch := range slices.Chunk(machines, maxBatch) {
		changed, failures := make([]*clusterv1.Machine, len(batch)), make([]error, len(batch))
		var running sync.WaitGroup
		for i, machine := range batch {
			running.Go(func() { changed[i], failures[i] = r.patchOwnerRemediated(ctx, s, machine, what) })
		}
		running.Wait()
		s.replaceMachines(changed)
		end = end.And(outcome.FromError(kerrors.NewAggregate(failures)))
	}
	return end
}

// patchOwnerRemediated writes a condition to a Machine, unless it has it, and returns the Machine as it is then.
func (r *Reconciler) patchOwnerRemediated(
	ctx context.Context,
	s *scope,
	machine *clusterv1.Machine,
	what condition,
) (*clusterv1.Machine, error) {
	if !conditions.Changes(machine.Status.Conditions, what) {
		return machine, nil
	}
	return r.patchStatus(ctx, machine, func(status *clusterv1.MachineStatus) {
		conditions.Set(&status.Conditions, what, machine.Generation, s.Now)
	})
}

// patchStatus changes the status of a Machine as it was read: the Machine controller and the health check write
// conditions too. A Machine that is gone meanwhile needs no status. On error it returns the Machine as it was.
func (r *Reconciler) patchStatus(
	ctx context.Context,
	machine *clusterv1.Machine,
	change func(*clusterv1.MachineStatus),
) (*clusterv1.Machine, error) {
	updated := machine.DeepCopy()
	change(&updated.Status)
	err := r.Client.Status().Patch(ctx, updated, client.MergeFromWithOptions(machine, client.MergeFromWithOptimisticLock{}))
	switch {
	case persist.Gone(err):
		return machine, nil
	case err != nil:
		return machine, errors.Wrapf(err, "patching the status of Machine %s", client.ObjectKeyFromObject(machine))
	}
	return updated, nil
}

// replaceMachines puts Machines that were written in the place of those that were read.
func (s *scope) replaceMachines(written []*clusterv1.Machine) {
	byUID := make(map[types.UID]*clusterv1.Machine, len(written))
	for _, machine := range written {
		byUID[machine.UID] = machine
	}
	for i, machine := range s.machines {
		if newer, ok := byUID[machine.UID]; ok {
			s.machines[i] = newer
		}
	}
}
