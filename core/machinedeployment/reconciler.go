package machinedeployment

import (
	"context"

	"github.com/pkg/errors"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	kerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/external"
	"millwright.dev/core/safety/overshoot"
	"millwright.dev/core/safety/rewritten"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler brings the MachineSets of each MachineDeployment to its spec. Client and APIReader must
// be set; SetupWithManager sets defaults for the other fields.
type Reconciler struct {
	// Client reads typed objects from the cache, and writes.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Recorder records events.
	Recorder events.EventRecorder
	// Clock is the time source.
	Clock clock.PassiveClock
	// WatchFilter restricts the controller to MachineDeployments with this value of the watch label; "" is all.
	WatchFilter string
	// Overshoot knows of freezes that no label records; none when nil.
	Overshoot *overshoot.Guard
	// Node returns a Node of a Cluster from the cache; nil when it is not known. The cluster autoscaler learns nothing of Nodes if it is nil.
	Node func(cluster types.NamespacedName, name string) *corev1.Node
	// Informers read the bootstrap templates, whose taints and labels the cluster autoscaler is told; none when nil.
	Informers *external.Informers
	// Written remembers the versions of the deployments that were written last.
	Written *persist.Versions
	// Sets remembers the versions of the MachineSets that were written last. It is shared with their controller.
	Sets *persist.Versions

	kinds *external.Kinds
	// decreases remembers which sets have not observed a smaller number of replicas yet.
	decreases decreases
	// marks remembers of which deployments the cache has shown the marks of all Machines.
	marks marks
	// ahead remembers since when sets have counted other Machines than the cache shows.
	ahead ahead
	// rewritten remembers sets that others rewrite.
	rewritten rewritten.Memory
	// progress remembers how far the deployments that are under way have come.
	progress tracker
}

// Reconcile brings one MachineDeployment closer to its spec:
//
//  1. read the deployment and its Cluster; stop if it is paused by annotation or Cluster
//  2. take the finalizer, owner and label that it needs
//  3. find its sets – owned ones, adopt and release by the selector – and their Machines
//  4. if the deployment is being deleted, delete the sets and wait, or release them if they shall be orphaned
//  5. otherwise bring back the template of an earlier revision, if that is asked for
//  6. choose the current set, bring the fields up to date that reach existing sets, plan the number of replicas
//     of each set and apply the plan; delete empty sets beyond the history when the rollout is complete
//  7. find out whether what is wanted has been missing for too long, whatever has failed before
//  8. tell the cluster autoscaler what a Node will have, if the deployment has its limits
//  9. write the status, if it has changed
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	deployment := &clusterv1.MachineDeployment{}
	if err := r.Client.Get(ctx, request.NamespacedName, deployment); err != nil {
		if apierrors.IsNotFound(err) {
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.Wrapf(err, "reading MachineDeployment %s", request)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, deployment) {
		// It is another core's now. Should it come back, what that one has done is not known here.
		r.forget(deployment.UID)
		return ctrl.Result{}, nil
	}
	if wait := r.Written.Behind(deployment); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s := r.newScope(deployment)
	end := outcome.InOrder(ctx, s, r.steps(s)...)
	if !s.stale && !s.Gone {
		if s.read && s.settings.selector != nil {
			// Whatever has failed, the progress deadline holds.
			end = end.And(r.watchProgress(ctx, s))
			end = end.And(r.tellAutoscaler(ctx, s))
		}
		end = end.And(r.awaitCache(s))
		end = end.And(r.save(ctx, s, end.Err()))
	}
	if s.Gone {
		r.forget(deployment.UID)
	}
	return end.Result()
}

// steps are those for the deployment as it was read.
func (r *Reconciler) steps(s *scope) []outcome.Step[*scope] {
	if s.Deleting() {
		return r.deletion()
	}
	return r.normal()
}

// normal are the steps for a deployment that is not being deleted. Each stops those after it when it has to wait.
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

// save writes the revision, and the status that follows from what was read and done. failure is the error that ended the steps, if
// one did.
func (r *Reconciler) save(ctx context.Context, s *scope, failure error) outcome.Outcome {
	setRevision(s)
	_, err := s.Save(ctx, func(refused error) bool {
		s.setStatus(kerrors.NewAggregate([]error{failure, refused}))
		return true
	})
	return outcome.FromError(err)
}
