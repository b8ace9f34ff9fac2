package machineset

import (
	"context"

	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/safety/overshoot"
)

// owner is the deployment of the set, nil without one.
func (s *scope) owner() metav1.Object {
	if s.deployment == nil {
		return nil
	}
	return s.deployment
}

// checkFrozen notes that no Machine is created while the set or its deployment is frozen, and labels a set whose deployment is. What is
// too much is deleted all the same, and existing Machines are completed.
func (r *Reconciler) checkFrozen(ctx context.Context, s *scope) outcome.Outcome {
	if reason, message := s.guard.Of(s.Object, s.owner()); reason != "" {
		s.block("frozen (" + reason + "): " + message)
	}
	value, labelled := overshoot.LabelOfSet(s.Object, s.owner())
	if before, had := s.Object.Labels[overshoot.FrozenLabel]; had == labelled && before == value {
		return outcome.Continue()
	}
	return outcome.FromError(errors.WithMessage(s.Patch(ctx, func(set *clusterv1.MachineSet) {
		if !labelled {
			delete(set.Labels, overshoot.FrozenLabel)
			return
		}
		set.Labels = cloned(set.Labels)
		set.Labels[overshoot.FrozenLabel] = value
	}), "labelling the MachineSet as its MachineDeployment is"))
}

// frozenCondition is True while no Machine is created for the safety of all.
func frozenCondition(s *scope, _ error) condition { return s.guard.Condition(s.Object, s.owner()) }

// wakeWhenFrozen enqueues sets that become frozen, or unfrozen, without a change of their label.
func (r *Reconciler) wakeWhenFrozen(ctx context.Context, q queue) error {
	if r.Overshoot != nil {
		r.Overshoot.OnChange(func(object client.Object) {
			switch object.(type) {
			case *clusterv1.MachineSet:
				q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			case *clusterv1.MachineDeployment:
				for _, request := range r.setsOfDeployment(ctx, object) {
					q.Add(request)
				}
			}
		})
	}
	return nil
}
