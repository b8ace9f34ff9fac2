package machineset

import (
	"context"
	"slices"
	"sync"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/conditions"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch

// remediate deletes the Machines that failed their health check, as many at once as the deployment allows; others are created when
// they are gone. None is deleted that could not be replaced. The condition OwnerRemediated of each Machine is set before it is
// deleted.
func (r *Reconciler) remediate(ctx context.Context, s *scope) outcome.Outcome {
	end := r.endRemediation(ctx, s)
	key := s.Key()
	unhealthy := toRemediate(s.machines)
	if len(unhealthy) == 0 {
		r.forSlots.content(key)
		return end
	}
	outdated := !ofCurrentRevision(s)
	if outdated && !replacedOnDelete(s.deployment) {
		r.forSlots.content(key)
		return end.And(r.setOwnerRemediated(ctx, s, unhealthy, notOfCurrentRevision(s.deployment)))
	}
	limit, blocker := remediationLimit(s.deployment)
	// What is recorded by now concerns all Machines.
	blockers := slices.Clone(s.blockers)
	if blocker != "" {
		blockers = append(blockers, blocker)
	}
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
		r.forSlots.content(key)
		return end.And(r.setOwnerRemediated(ctx, s, unhealthy, deferredBecause(blockers)))
	}
	return end.And(r.remediateWithin(ctx, s, limit, unhealthy))
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

// remediateWithin deletes as many of the Machines as the limit allows, and sets OwnerRemediated of the others.
func (r *Reconciler) remediateWithin(ctx context.Context, s *scope, limit int, unhealthy []*clusterv1.Machine) outcome.Outcome {
	granted := grant{machines: unhealthy}
	if s.deployment != nil {
		r.forSlots.await(s.Key(), s.Object.Namespace)
		all, err := r.machinesOfDeployment(ctx, s)
		if err != nil {
			return outcome.FromError(err)
		}
		if err := r.verifyRemediations(ctx, s, all); err != nil {
			return outcome.FromError(err)
		}
		granted = r.slots.take(s.deployment.UID, limit, all, unhealthy, s.Now)
		for _, machine := range all {
			if owner := metav1.GetControllerOf(machine); inFlight(machine) && owner != nil && owner.UID != s.Object.UID {
				s.elsewhere = append(s.elsewhere, machine.Name)
			}
		}
		slices.Sort(s.elsewhere)
	}
	chosen := uids(granted.machines)
	deferred := slices.DeleteFunc(slices.Clone(unhealthy), func(m *clusterv1.Machine) bool { return chosen[m.UID] })
	end := r.replace(ctx, s, granted)
	if len(deferred) == 0 {
		r.forSlots.content(s.Key())
		return end
	}
	if !granted.until.IsZero() {
		// A slot that nothing confirms must not hold up the others for ever.
		end = end.And(outcome.ContinueAfter(granted.until.Sub(s.Now)))
	}
	return end.And(r.setOwnerRemediated(ctx, s, deferred, deferredByLimit(s.deployment, limit)))
}

// replace sets OwnerRemediated of Machines and deletes them.
func (r *Reconciler) replace(ctx context.Context, s *scope, granted grant) outcome.Outcome {
	end := outcome.Continue()
	var marked []*clusterv1.Machine
	for _, machine := range granted.machines {
		changed, err := r.patchOwnerRemediated(ctx, s, machine, remediationBegun())
		if err != nil {
			if granted.fresh[machine.UID] {
				r.slots.release(s.deployment.UID, machine.UID)
			}
			end = end.And(outcome.FromError(err))
			continue
		}
		marked = append(marked, changed)
	}
	s.replaceMachines(marked)
	return end.And(r.scaleDown(ctx, s, scalePlan{remove: marked, reason: "a health check has found them unhealthy"}))
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
	case apierrors.IsNotFound(err):
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

// machinesOfDeployment lists the Machines of all sets of the deployment, as the cache has them.
func (r *Reconciler) machinesOfDeployment(ctx context.Context, s *scope) ([]*clusterv1.Machine, error) {
	list := &clusterv1.MachineSetList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Object.Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrapf(err, "listing the MachineSets of MachineDeployment %s", client.ObjectKeyFromObject(s.deployment))
	}
	var all []*clusterv1.Machine
	for i := range list.Items {
		if !metav1.IsControlledBy(&list.Items[i], s.deployment) {
			continue
		}
		owned, err := machines.ControlledBy(ctx, r.Client, &list.Items[i])
		if err != nil {
			return nil, err
		}
		all = append(all, owned...)
	}
	return all, nil
}

// verifyRemediations asks the API server, once after the start, which Machines of the deployment are being deleted:
// the cache may be behind what the process before has done.
func (r *Reconciler) verifyRemediations(ctx context.Context, s *scope, known []*clusterv1.Machine) error {
	if s.deployment.Spec.Remediation.MaxInFlight == nil || r.slots.verified(s.deployment.UID) {
		return nil
	}
	list := &metav1.PartialObjectMetadataList{}
	list.SetGroupVersionKind(clusterv1.GroupVersion.WithKind("MachineList"))
	if err := r.APIReader.List(ctx, list, client.InNamespace(s.Object.Namespace), client.MatchingLabels{
		clusterv1.MachineDeploymentNameLabel: s.Object.Labels[clusterv1.MachineDeploymentNameLabel],
	}); err != nil {
		return errors.Wrapf(err, "listing the Machines of MachineDeployment %s", client.ObjectKeyFromObject(s.deployment))
	}
	r.slots.verify(s.deployment.UID, list.Items, known, s.Now)
	return nil
}

// waitingForSlots are the sets that the end of a Machine may let go on. If the last that was seen of it is not all
// there was, it may have been one that was remediated.
func (r *Reconciler) waitingForSlots(object client.Object, unknown bool) []types.NamespacedName {
	if machine, ok := object.(*clusterv1.Machine); ok && (unknown || inFlight(machine)) {
		return r.forSlots.wake(machine.Namespace)
	}
	return nil
}
