package machineset

import (
	"context"
	"time"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
	"millwright.dev/core/safety/rewritten"
)

// AdoptedAnnotation is the one of package machines.
const AdoptedAnnotation = machines.AdoptedAnnotation

// claims are the changes of ownership that a selector asks for.
type claims struct {
	// adopt are Machines that become the set's, release those that no longer are.
	adopt, release []*clusterv1.Machine
}

// planClaims compares the Machines with the selector. Machines that are being deleted keep the owner that they
// have, and find no new one.
func planClaims(set *clusterv1.MachineSet, selector labels.Selector, owned, candidates []*clusterv1.Machine) claims {
	var plan claims
	for _, machine := range owned {
		if machine.DeletionTimestamp.IsZero() && !selector.Matches(labels.Set(machine.Labels)) {
			plan.release = append(plan.release, machine)
		}
	}
	have := uids(owned)
	for _, machine := range candidates {
		// The cache may show a Machine as free that was adopted a moment ago. One that is preserved is of no set, whatever labels it has
		// left: who adopts it deletes it, or preserves it again, for ever. A user may keep a Machine to themselves, too.
		free := !have[machine.UID] && !machines.Preserved(machine) && machine.Labels[machines.CreatorLabel] != machines.NoCreator
		if free && machine.DeletionTimestamp.IsZero() && machine.Spec.ClusterName == set.Spec.ClusterName {
			plan.adopt = append(plan.adopt, machine)
		}
	}
	return plan
}

// claim adopts and releases. Each patch has the version of the Machine, so that of two sets that want one
// Machine only one gets it.
func (r *Reconciler) claim(ctx context.Context, s *scope) outcome.Outcome {
	plan := planClaims(s.Object, s.selector, s.machines, s.candidates)
	end := outcome.Continue()
	for _, machine := range plan.release {
		if r.keeps(ctx, s, machine, &end) {
			continue
		}
		r.release(ctx, s, machine, "its labels no longer match the selector", &end)
	}
	if len(plan.adopt) > 0 {
		lives, err := r.lives(ctx, s)
		if err != nil || !lives {
			// The watch brings its deletion.
			return end.And(outcome.FromError(err)).And(outcome.Wait())
		}
	}
	for _, machine := range plan.adopt {
		if _, _, tried := r.rewritten.Known(s.Object.UID, machine, s.Now); tried {
			continue
		}
		adopted := machine.DeepCopy()
		adopted.OwnerReferences = append(adopted.OwnerReferences, *metav1.NewControllerRef(s.Object, setKind))
		if !s.created(machine) {
			adopted.Annotations = cloned(adopted.Annotations)
			adopted.Annotations[AdoptedAnnotation] = s.Now.UTC().Format(time.RFC3339)
		}
		adopted.Labels = cloned(adopted.Labels)
		adopted.Labels[machines.CreatorLabel] = machines.CreatorOf(s.Object)
		if r.claimed(ctx, s, machine, adopted, &end) {
			if !s.wantedOn().Found(adopted) {
				r.noteRewritten(s, adopted, "Adopt")
				continue
			}
			s.machines = append(s.machines, adopted)
			r.expectations.created(s.Object.UID, adopted, s.Now)
			r.eventAbout(s, machine, adoptedEvent, "Adopt", "Adopted Machine %s", machine.Name)
		}
	}
	return end
}

// created reports whether a Machine was created for this set, or for its deployment, and has lost its owner since: a policy has removed it,
// or the set was deleted without its Machines. What is missing of such a Machine is created, unlike that of a Machine that a user made.
func (s *scope) created(machine *clusterv1.Machine) bool {
	by := machine.Labels[machines.CreatorLabel]
	return by != "" && (by == string(s.Object.UID) || by == machines.CreatorOf(s.Object))
}

// claimed writes a change of ownership and reports whether it was written. One that has lost a race is left to the
// event that the other's write brings.
func (r *Reconciler) claimed(ctx context.Context, s *scope, from, to *clusterv1.Machine, end *outcome.Outcome) bool {
	err := r.Client.Patch(ctx, to, client.MergeFromWithOptions(from, client.MergeFromWithOptimisticLock{}))
	switch {
	case err == nil:
		ctrl.LoggerFrom(ctx).Info("Changed the ownership of a Machine", "Machine", client.ObjectKeyFromObject(from))
		return true
	case persist.Gone(err):
	default:
		s.failed(errors.Wrapf(err, "changing the ownership of Machine %s by MachineSet %s", from.Name, s.Object.Name), end)
	}
	return false
}

// failed notes that one Machine could not be changed. If the API server rejects that, the others are scaled down and completed all the
// same, and none is created.
func (s *scope) failed(err error, end *outcome.Outcome) {
	if persist.Refusal(err) == "" {
		*end = end.And(outcome.FromError(err))
		return
	}
	s.note(&s.refusals, err.Error())
	*end = end.And(outcome.ContinueAfter(rewritten.Retry))
}
