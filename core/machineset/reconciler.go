package machineset

import (
	"context"
	"time"

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
	"millwright.dev/core/external"
	"millwright.dev/core/remediation"
	"millwright.dev/core/safety/freeze"
	"millwright.dev/core/safety/overshoot"
	"millwright.dev/core/safety/rewritten"
)

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinesets/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;create;patch;delete
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconciler maintains the number of Machines of each MachineSet. Client, APIReader and Informers must be set;
// SetupWithManager sets defaults for the other fields.
type Reconciler struct {
	// Client reads from the cache, at least typed objects, and writes.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Informers are those of the providers' kinds, which the controllers of the manager share.
	Informers *external.Informers
	// Recorder records events.
	Recorder events.EventRecorder
	// Clock is the time source.
	Clock clock.Clock
	// Preflight are the checks that come before each creation or remediation of a Machine; none when empty.
	Preflight []clusterv1.MachineSetPreflightCheck
	// WatchFilter restricts the controller to MachineSets with this value of the watch label; "" is all.
	WatchFilter string
	// Remediation are the defaults of what bounds replacements; see remediation.DefaultOptions. The zero value bounds nothing but
	// retries, of which there are none.
	Remediation remediation.Options
	// PreserveTimeout is how long preserved Machines stay; DefaultPreserveTimeout when zero. PreserveFailedMax is how many failed
	// Machines of a deployment, or of a set without one, are preserved without being asked for.
	PreserveTimeout   time.Duration
	PreserveFailedMax int
	// Freeze reports when nothing is replaced; never when nil.
	Freeze freeze.Source
	// Overshoot knows of freezes that no label records; none when nil.
	Overshoot *overshoot.Guard
	// Written remembers the versions of the sets that were written last. It is shared with the MachineDeployment
	// controller, which writes sets too: a reconcile based on an older spec would get a conflict.
	Written *persist.Versions

	// kinds reads templates and what was created from them, and enqueues sets on events of templates.
	kinds *external.Kinds
	// expectations remembers the Machines that were written last.
	expectations expectations
	// pace spaces the reconciles that events of Machines request.
	pace pace
	// rewritten remembers Machines that others rewrite, so that they are not replaced time and again.
	rewritten rewritten.Memory
	// holders has what the API server has answered about instances that are to be adopted.
	holders holderMemory
	// slots bound how many Machines of a deployment are remediated at once.
	slots remediation.Slots
	// preserving lets one set of a deployment at a time keep Machines for inspection.
	preserving groupLocks
	// forSlots are sets that wait for the end of a remediation in their namespace; forControlPlane are those that
	// wait for a change of their control plane.
	forSlots, forControlPlane waitList
	// newSeed generates seeds for reservations of names; replaced in tests.
	newSeed func() string
}

// Reconcile brings one MachineSet closer to its spec:
//
//  1. read the set, its Cluster and deployment; stop if it is paused
//  2. take the finalizer, owner and label that the set needs
//  3. find its Machines: owned ones, adopt those that match, release those that no longer do, and note whose names must
//     not be used again
//  4. if the set is being deleted, delete them and wait
//  5. otherwise read the templates, remediate Machines that failed their health check, complete those whose
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
		// Another instance manages it now. Should it come back, the API server is asked what that one has done.
		r.forget(request.NamespacedName)
		r.expectations.forget(set.UID)
		r.rewritten.Forget(set.UID)
		return ctrl.Result{}, nil
	}
	if wait := r.Written.Behind(set); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s := r.newScope(set)
	end := outcome.InOrder(ctx, s, r.steps(s)...)
	// While a cache is being filled there is nothing to report yet. The end of that brings the set back.
	if pending := s.syncing && end.Err() == nil; !pending && !s.Gone {
		end = end.And(r.save(ctx, s, end.Err()))
	}
	if s.Gone {
		r.expectations.forget(set.UID)
		r.rewritten.Forget(set.UID)
	}
	return end.Result()
}

// forget drops what is remembered of a set by its name, when it is gone.
func (r *Reconciler) forget(set types.NamespacedName) {
	r.pace.forget(set)
	r.forSlots.remove(set)
	r.forControlPlane.remove(set)
	r.holders.keep(set, nil)
	forgetHeld(set)
}

// steps are those for the set as it was read.
func (r *Reconciler) steps(s *scope) []outcome.Step[*scope] {
	if s.Deleting() {
		return r.deletion()
	}
	return r.normal()
}

// normal are the steps for a set that is not being deleted. Each stops those after it when it has to wait.
func (r *Reconciler) normal() []outcome.Step[*scope] {
	return []outcome.Step[*scope]{
		r.readContext,
		r.checkPaused,
		r.ensureMetadata,
		r.readMachines,
		r.checkSpec,
		r.claim,
		r.reviewRewritten,
		r.retireNames,
		r.readTemplates,
		r.awaitSync,
		r.work,
	}
}

// work are the steps that do not depend on one another.
func (r *Reconciler) work(ctx context.Context, s *scope) outcome.Outcome {
	return outcome.All(ctx, s,
		r.checkFrozen,
		r.preserveNow,
		r.remediate,
		r.reviewAdoptions,
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

// save writes the status that follows from what was read and done. failure is the error that ended the steps, if one did.
func (r *Reconciler) save(ctx context.Context, s *scope, failure error) outcome.Outcome {
	before := heldBecause(s.Original)
	_, err := s.Save(ctx, func(refused error) bool {
		s.setStatus(kerrors.NewAggregate([]error{failure, refused}))
		return true
	})
	if err == nil {
		r.recordHeld(s, before)
		s.measureAdoptions()
	}
	return outcome.FromError(err)
}
