package machinedeployment

import (
	"context"

	"github.com/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/machines"
)

// removeMachines deletes the Machines that an order names, before their set learns of its smaller number: it counts those
// first that are going. Each is deleted exactly as it was read: one that has changed since may serve by now.
func (r *Reconciler) removeMachines(ctx context.Context, s *scope, set *clusterv1.MachineSet, scale intent) error {
	if len(scale.remove) == 0 {
		return nil
	}
	order := machines.ByDeletion(s.machines[set.UID], set.Spec.Deletion.Order)
	var failures []error
	for _, at := range scale.remove {
		machine := order[at]
		target := &clusterv1.Machine{}
		target.Namespace, target.Name = machine.Namespace, machine.Name
		preconditions := client.Preconditions{UID: &machine.UID, ResourceVersion: &machine.ResourceVersion}
		if err := r.Client.Delete(ctx, target, preconditions); persist.IgnoreGone(err) != nil {
			failures = append(failures, errors.Wrapf(err, "deleting Machine %s", client.ObjectKeyFromObject(machine)))
			continue
		}
		ctrl.LoggerFrom(ctx).Info("Deleted Machine", "Machine", machine.Name, "reason", scale.reason)
		r.event(s, machine, DeletedEvent, "DeleteMachine",
			"Deleted Machine %s: %s", machine.Name, scale.reason)
	}
	return kerrors.NewAggregate(failures)
}
