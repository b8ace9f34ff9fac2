package machineset

import (
	"github.com/pkg/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/predicate"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
	"millwright.dev/core/naming"
)

// SetupWithManager adds the reconciler to a manager, whose cache must have the indexes of core/index.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager, options controller.Options) error {
	if r.Clock == nil {
		r.Clock = clock.RealClock{}
	}
	if r.Recorder == nil {
		r.Recorder = events.Within(mgr.GetEventRecorder("machineset"))
	}
	if r.Written == nil {
		r.Written = &persist.Versions{}
	}
	if r.newSeed == nil {
		r.newSeed = func() string { return rand.String(naming.RandomLength) }
	}
	crd := &metav1.PartialObjectMetadata{}
	crd.SetGroupVersionKind(version.CRDKind)
	built, err := ctrl.NewControllerManagedBy(mgr).
		Named("machineset").
		For(&clusterv1.MachineSet{}, builder.WithPredicates(predicates.HasWatchLabel(r.WatchFilter), predicate.Or(r.Written.Awaited(), setChanged()))).
		Watches(&clusterv1.Machine{}, r.machineHandler()).
		Watches(&clusterv1.Cluster{}, handler.EnqueueRequestsFromMapFunc(r.setsOfCluster), builder.WithPredicates(clusterChanged())).
		Watches(&clusterv1.MachineDeployment{}, handler.EnqueueRequestsFromMapFunc(r.setsOfDeployment),
			builder.WithPredicates(deploymentChanged())).
		WatchesMetadata(crd, handler.EnqueueRequestsFromMapFunc(r.setsOfCRD), builder.WithPredicates(predicate.LabelChangedPredicate{})).
		WithOptions(options).
		Build(r)
	if err != nil {
		return errors.Wrap(err, "building the MachineSet controller")
	}
	r.kinds = &external.Kinds{Resolver: r.Resolver, Cache: mgr.GetCache(), Clock: r.Clock}
	return errors.Wrap(r.kinds.Bind(built, handler.EnqueueRequestsFromMapFunc(r.setsOfExternal)), "watching templates")
}
