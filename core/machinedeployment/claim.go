package machinedeployment

import (
	"context"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/machines"
)

// claim adopts sets that have no controller and that the selector matches, unless their own selector is narrower. Each patch has the
// version of the set, so that of two deployments only one gets it. Sets that the deployment controls stay with it, whatever their labels
// and its selector become.
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
		if _, _, tried := r.rewritten.Known(s.deployment.UID, set, s.Now); tried {
			continue
		}
		adopted := set.DeepCopy()
		adopted.OwnerReferences = append(adopted.OwnerReferences, *metav1.NewControllerRef(s.deployment, deploymentKind))
		adopted.Labels = with(adopted.Labels, machines.CreatorLabel, string(s.deployment.UID))
		wanted := adopted.DeepCopy()
		if err := r.own(ctx, set, adopted); err != nil {
			end = end.And(outcome.FromError(err))
			continue
		}
		if !metav1.IsControlledBy(adopted, s.deployment) {
			// The write was accepted without the owner reference.
			r.noteCreated(s, wanted, adopted)
			continue
		}
		s.sets = append(s.sets, adopted)
		r.event(s, adopted, AdoptedEvent, "Adopt", "Adopted MachineSet %s", set.Name)
	}
	for _, set := range s.sets {
		r.noteUnmatched(s, set)
	}
	end = end.And(r.reviewRewritten(ctx, s))
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
