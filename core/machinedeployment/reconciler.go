package machinedeployment

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler brings the MachineSets of each MachineDeployment to what its spec says. Client and APIReader must
// be set; SetupWithManager fills in whatever else is empty.
type Reconciler struct {
	// Client reads typed objects from the cache, and writes.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Recorder records events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.PassiveClock
	// WatchFilterValue, when not empty, limits the reconciler to deployments with this value of the label
	// cluster.x-k8s.io/watch-filter.
	WatchFilter string
	// Sets knows the versions of the MachineSets that were written last. It is shared with their controller.
	Sets *persist.Versions

	// written knows the versions of the deployments that were written last.
	written persist.Versions
	// decreases remembers what sets have been told to give up, until they have looked at it.
	decreases decreases
	// marks remembers whose Machines the cache has shown as they are marked.
	marks marks
	// ahead remembers since when sets have counted other Machines than the cache shows.
	ahead ahead
	// progress remembers how far the deployments that are under way have come.
	progress tracker
}

// Reconcile brings one MachineDeployment closer to what its spec says:
//
//  1. read the deployment and its Cluster; stop if it is paused by annotation or Cluster
//  2. take the finalizer, owner and label that it needs
//  3. find its sets – owned ones, adopt and release by the selector – and their Machines
//  4. if the deployment is being deleted, delete the sets and wait, or release them if they shall be orphaned
//  5. otherwise bring back the template of an earlier revision, if that is asked for
//  6. choose the current set, bring the fields up to date that reach existing sets, plan the number of replicas
//     of each set and apply the plan; delete empty sets beyond the history when the rollout is complete
//  7. find out whether what is wanted has been missing for too long, whatever has failed before
//  8. write the status, if it has changed
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	deployment := &clusterv1.MachineDeployment{}
	if err := r.Client.Get(ctx, request.NamespacedName, deployment); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.Wrapf(err, "reading MachineDeployment %s", request)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, deployment) {
		return ctrl.Result{}, nil
	}
	if wait := r.written.Behind(deployment); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s := &scope{deployment: deployment, before: deployment.DeepCopy(), now: r.Clock.Now()}
	steps := r.normal()
	if !deployment.DeletionTimestamp.IsZero() {
		steps = r.deletion()
	}
	end := outcome.InOrder(ctx, s, steps...)
	if s.gone || s.stale {
		return end.Result()
	}
	if s.read && s.settings.selector != nil {
		// Whatever has failed: that it lasts too long is seen in any case.
		end = end.And(r.watchProgress(ctx, s))
	}
	return end.And(r.awaitCache(s)).And(r.save(ctx, s, end.Err())).Result()
}

// normal are the steps for a deployment that shall exist. Each stops those after it when it has to wait.
func (r *Reconciler) normal() []outcome.Step[*scope] {
	return []outcome.Step[*scope]{
		r.readCluster,
		r.checkPaused,
		r.ensureMetadata,
		r.readSets,
		r.readMachines,
		r.rollBack,
		r.applyDefaults,
		r.checkSpec,
		r.claim,
		r.choose,
		r.roll,
		r.cleanUp,
	}
}

// deletion are the steps for a deployment that is being deleted.
func (r *Reconciler) deletion() []outcome.Step[*scope] {
	return []outcome.Step[*scope]{
		r.readCluster,
		r.checkPaused,
		r.readSets,
		r.readMachines,
		r.requeueAfterSlowDeletion,
		r.orphan,
		r.deleteAll,
		r.removeFinalizer,
	}
}

// save writes the status that follows from what was read and done.
func (r *Reconciler) save(ctx context.Context, s *scope, failure error) outcome.Outcome {
	conclude(s, failure)
	written, err := persist.Save(ctx, r.Client, s.before, s.deployment, statusOf, func(refused error) {
		s.refused = true
		conclude(s, kerrors.NewAggregate([]error{failure, refused}))
	})
	if written.Status || written.Object {
		r.written.Wrote(s.deployment)
	}
	// A deployment that has gone in the meantime needs no status.
	return outcome.FromError(client.IgnoreNotFound(errors.Cause(err)))
}

func statusOf(deployment *clusterv1.MachineDeployment) *clusterv1.MachineDeploymentStatus {
	return &deployment.Status
}
