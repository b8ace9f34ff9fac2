package freeze

import (
	"github.com/pkg/errors"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"

	"millwright.dev/contracts/controller/wake"
)

// SetupWithManager adds the controller to the manager.
func (e *Examiner) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	connected := wake.New()
	e.Freezer.targets.OnConnectivity(connected.Enqueue)
	e.Freezer.OnChange(func(changed client.ObjectKey) {
		for _, cluster := range e.Freezer.unexamined(changed) {
			connected.Enqueue(cluster)
		}
	})
	err := ctrl.NewControllerManagedBy(mgr).Named("restore").WatchesRawSource(connected.Source()).
		Watches(&clusterv1.Machine{}, handler.EnqueueRequestsFromMapFunc(e.clusterOf), builder.WithPredicates(instanceVanished())).
		WithOptions(options).Complete(e)
	return errors.Wrap(err, "adding the controller that looks for signs of a restore")
}
