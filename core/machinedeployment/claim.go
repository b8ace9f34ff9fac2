package machinedeployment

import (
	"context"
	"slices"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
)

// claim adopts sets that have no controller and that the selector matches, unless their own selector is narrower, and releases
// those that it matches no longer. Each patch has the version of the set, so that of two deployments only one gets it.
func (r *Reconciler) claim(ctx context.Context, s *scope) outcome.Outcome {
	end := outcome.Continue()
	if len(s.candidates) > 0 {
		lives, err := r.lives(ctx, s.deployment)
		if err != nil || !lives {
			// The watch brings its deletion.
			return outcome.FromError(err).And(outcome.Wait())
		}
	}
	for _, set := range s.candidates {
		if !set.DeletionTimestamp.IsZero() || set.Spec.ClusterName != s.deployment.Spec.ClusterName {
			continue
		}
		if !selects(s.deployment, set) {
			r.refuse(s, set)
			continue
		}
		adopted := set.DeepCopy()
		adopted.OwnerReferences = append(adopted.OwnerReferences, *metav1.NewControllerRef(s.deployment, deploymentKind))
		if err := r.own(ctx, set, adopted); err != nil {
			end = end.And(outcome.FromError(err))
			continue
		}
		s.sets = append(s.sets, adopted)
		r.event(s, adopted, AdoptedEvent, "Adopt", "Adopted MachineSet %s", set.Name)
	}
	for _, set := range slices.Clone(s.sets) {
		if !set.DeletionTimestamp.IsZero() || s.settings.selector.Matches(labels.Set(set.Labels)) {
			continue
		}
		end = end.And(r.release(ctx, s, set, "its labels no longer match the selector"))
	}
	bySeniority(s.sets)
	if len(s.candidates) > 0 {
		end = end.And(r.readMachines(ctx, s))
	}
	return end
}

func (r *Reconciler) own(ctx context.Context, from, to *clusterv1.MachineSet) error {
	if err := r.Client.Patch(ctx, to, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{})); err != nil {
		return errors.Wrapf(err, "changing the ownership of MachineSet %s", client.ObjectKeyFromObject(from))
	}
	r.Sets.Wrote(to)
	return nil
}
