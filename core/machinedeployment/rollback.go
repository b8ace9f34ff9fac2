package machinedeployment

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// rollBack does what RollbackToAnnotation asks for: what makes a revision of the template – version, bootstrap,
// infrastructure, failure domain – becomes what it was, and the annotation goes, in one write. So it happens once
// or not at all, whenever the process exits; from there on it is a rollout like any other. An annotation that names
// no revision stays, and RollingOut reports it, until a user corrects it.
func (r *Reconciler) rollBack(ctx context.Context, s *scope) outcome.Outcome {
	value, asked := s.deployment.Annotations[RollbackToAnnotation]
	if !asked {
		return outcome.Continue()
	}
	set, refused := rollbackTarget(s.deployment, s.sets, value)
	if refused != "" {
		s.rollbackRefused = refused
		if found := meta.FindStatusCondition(
			s.deployment.Status.Conditions,
			clusterv1.MachineDeploymentRollingOutCondition,
		); found == nil ||
			found.Reason != RollbackRevisionNotFoundReason {
			r.warn(s, nil, RollbackRevisionNotFoundReason, "RollBack", "%s", refused)
		}
		return outcome.Continue()
	}
	if err := s.Patch(ctx, func(deployment *clusterv1.MachineDeployment) {
		delete(deployment.Annotations, RollbackToAnnotation)
		restore(&deployment.Spec.Template.Spec, &set.Spec.Template.Spec)
	}); err != nil {
		return outcome.FromError(errors.WithMessage(err, "rolling back"))
	}
	ctrl.LoggerFrom(ctx).Info("Rolled back the template", "MachineSet", set.Name, "revision", machines.Revision(set))
	r.event(s, set, RolledBackEvent, "RollBack",
		"Rolled back to revision %d, the template of MachineSet %s", machines.Revision(set), set.Name)
	return outcome.Continue()
}

// rollbackTarget finds the set whose template is asked for, or why there is none.
func rollbackTarget(deployment *clusterv1.MachineDeployment, sets []*clusterv1.MachineSet, value string) (*clusterv1.MachineSet, string) {
	revision, err := strconv.ParseInt(value, 10, 64)
	if err != nil || revision < 0 {
		return nil, fmt.Sprintf("annotation %s %q is not a revision: use the number of a revision that is kept, or 0 for the previous one",
			RollbackToAnnotation, value)
	}
	var kept, others []*clusterv1.MachineSet
	for _, set := range sets {
		if !set.DeletionTimestamp.IsZero() || machines.Revision(set) == 0 {
			continue
		}
		kept = append(kept, set)
		if machines.Revision(set) == revision {
			return set, ""
		}
		if len(machines.OutdatedBecause(&deployment.Spec.Template, &set.Spec.Template)) > 0 {
			others = append(others, set)
		}
	}
	byRevision(kept)
	byRevision(others)
	switch {
	case revision == 0 && len(others) > 0:
		return others[0], ""
	case revision == 0:
		return nil, "There is no previous revision to roll back to; " + keptRevisions(kept) +
			": remove the annotation " + RollbackToAnnotation
	}
	return nil, fmt.Sprintf("Revision %d, to roll back to, is not kept; %s: correct the annotation %s, or remove it",
		revision, keptRevisions(kept), RollbackToAnnotation)
}

func keptRevisions(sets []*clusterv1.MachineSet) string {
	if len(sets) == 0 {
		return "no revision is kept"
	}
	parts := make([]string, 0, len(sets))
	for _, set := range sets {
		parts = append(parts, fmt.Sprintf("%d (MachineSet %s)", machines.Revision(set), set.Name))
	}
	return "kept are " + strings.Join(parts, ", ")
}

// byRevision sorts sets by revision, the highest first.
func byRevision(sets []*clusterv1.MachineSet) {
	slices.SortStableFunc(sets, func(a, b *clusterv1.MachineSet) int { return int(machines.Revision(b) - machines.Revision(a)) })
}

// restore brings back what makes a revision. Labels, taints, timeouts and the like stay as they are by now: they
// are of no revision.
func restore(to, from *clusterv1.MachineSpec) {
	from = from.DeepCopy()
	to.Version, to.Bootstrap, to.InfrastructureRef, to.FailureDomain = from.Version, from.Bootstrap, from.InfrastructureRef, from.FailureDomain
}
