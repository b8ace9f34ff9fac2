package machinedeployment

import (
	"context"

	"k8s.io/client-go/util/workqueue"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// frozenCondition is True while no Machine of the deployment is created for the safety of all.
func frozenCondition(s *scope, _ error) condition { return s.guard.Condition(s.Object, nil) }

// wakeWhenFrozen enqueues deployments that become frozen, or unfrozen, without a change of their label.
func (r *Reconciler) wakeWhenFrozen(_ context.Context, q workqueue.TypedRateLimitingInterface[ctrl.Request]) error {
	if r.Overshoot != nil {
		r.Overshoot.OnChange(func(object client.Object) {
			if _, ok := object.(*clusterv1.MachineDeployment); ok {
				q.Add(ctrl.Request{NamespacedName: client.ObjectKeyFromObject(object)})
			}
		})
	}
	return nil
}
