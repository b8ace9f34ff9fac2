package machineset

import (
	"context"

	"github.com/pkg/errors"
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
	"millwright.dev/contracts/version"
	"millwright.dev/core/external"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler keeps the number of Machines of each MachineSet. Client, APIReader and Resolver must be set;
// SetupWithManager fills in whatever else is empty.
type Reconciler struct {
	// Client reads from the cache, at least typed objects, and writes.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Resolver tells the API versions of the providers' kinds.
	Resolver *version.Resolver
	// Recorder records events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.Clock
	// Preflight are the checks that come before each creation or remediation of a Machine; none when empty.
	Preflight []clusterv1.MachineSetPreflightCheck
	// WatchFilterValue, when not empty, limits the reconciler to sets with this value of the label
	// cluster.x-k8s.io/watch-filter.
	WatchFilter string
	// Written knows the versions of the sets that were written last. It is shared with the MachineDeployment
	// controller, which writes sets too: a status written on the ground of an older spec would be a conflict.
	Written *persist.Versions

	// kinds reads templates and what was made from them, and wakes sets by events of templates.
	kinds *external.Kinds
	// expectations knows the Machines that were written last.
	expectations expectations
	// pace spaces the reconciles that events of Machines ask for.
	pace pace
	// slots bound how many Machines of a deployment are remediated at once.
	slots remediationSlots
	// forSlots are sets that wait for the end of a remediation in their namespace; forControlPlane are those that
	// wait for a change of their control plane.
	forSlots, forControlPlane waitList
	// newSeed makes seeds for reservations of names; replaced in tests.
	newSeed func() string
}

// Reconcile brings one MachineSet closer to what its spec says:
//
//  1. read the set, its Cluster and deployment; stop if it is paused
//  2. take the finalizer, owner and label that the set needs
//  3. find its Machines: owned ones, adopt those that match, release those that no longer do, and note whose names must
//     not be used again
//  4. if the set is being deleted, delete them and wait
//  5. otherwise read the templates, remediate Machines that a health check has handed over, complete those whose
//     creation was interrupted, bring them up to date, and create or delete as many as the number of replicas asks for
//  6. write the status, if it has changed
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	r.pace.began(request.NamespacedName, r.Clock.Now())
	set := &clusterv1.MachineSet{}
	if err := r.Client.Get(ctx, request.NamespacedName, set); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
			return ctrl.Result{}, nil
		}
		return ctrl.Result{}, errors.Wrapf(err, "reading MachineSet %s", request)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, set) {
		// It is another core's now. Should it come back, what that one has done is asked of the API server.
		r.forget(request.NamespacedName)
		r.expectations.forget(set.UID)
		return ctrl.Result{}, nil
	}
	if wait := r.Written.Behind(set); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s := &scope{set: set, before: set.DeepCopy(), now: r.Clock.Now()}
	steps := r.normal()
	if !set.DeletionTimestamp.IsZero() {
		steps = r.deletion()
	}
	end := outcome.InOrder(ctx, s, steps...)
	if s.gone {
		r.expectations.forget(set.UID)
		return end.Result()
	}
	if s.syncing && end.Err() == nil {
		// What is not known yet is no news for a status. The end of the reading wakes the set.
		return end.Result()
	}
	return end.And(r.save(ctx, s, end.Err())).Result()
}

// forget drops what is remembered of a set that is gone.
func (r *Reconciler) forget(set types.NamespacedName) {
	r.pace.forget(set)
	r.forSlots.content(set)
	r.forControlPlane.content(set)
}

// normal are the steps for a set that shall exist. Each stops those after it when it has to wait.
func (r *Reconciler) normal() []outcome.Step[*scope] {
	return []outcome.Step[*scope]{
		r.readContext,
		r.checkPaused,
		r.ensureMetadata,
		r.readMachines,
		r.checkSpec,
		r.claim,
		r.retireNames,
		r.readTemplates,
		r.awaitSync,
		r.work,
	}
}

// work are the steps that do not depend on one another.
func (r *Reconciler) work(ctx context.Context, s *scope) outcome.Outcome {
	return outcome.All(ctx, s,
		r.remediate,
		r.complete,
		r.propagate,
		r.scale,
		r.requeueAfterUnseen,
		r.requeueAfterSlowDeletion,
	)
}

// deletion are the steps for a set that is being deleted.
func (r *Reconciler) deletion() []outcome.Step[*scope] {
	return []outcome.Step[*scope]{
		r.readContext,
		r.checkPaused,
		r.readMachines,
		r.orphan,
		r.deleteAll,
		r.removeFinalizer,
	}
}

// save writes the status that follows from what was read and done.
func (r *Reconciler) save(ctx context.Context, s *scope, failure error) outcome.Outcome {
	conclude(s, failure)
	written, err := persist.Save(ctx, r.Client, s.before, s.set, statusOf, func(refused error) {
		conclude(s, kerrors.NewAggregate([]error{failure, refused}))
	})
	if written.Status || written.Object {
		r.Written.Wrote(s.set)
	}
	// A set that has gone in the meantime needs no status.
	return outcome.FromError(client.IgnoreNotFound(errors.Cause(err)))
}

func statusOf(set *clusterv1.MachineSet) *clusterv1.MachineSetStatus { return &set.Status }
