// Package controller reconciles CloudConfigs: see README.md for the steps and their order.
package controller

import (
	"context"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/contracts/controller/bulkhead"
)

// Targets returns clients of target clusters without a cache; a *remote.NotConnectedError while there is no connection.
type Targets interface {
	GetUncachedClient(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
}

// Reconciler gives machines what they need to become Nodes, and takes it away again.
type Reconciler struct {
	// Client reads CloudConfigs, Machines and Clusters from the cache, and writes.
	Client client.Client
	// Live reads Secrets of the management cluster, which a cache would have to read all, and the Machine before anything
	// is written or deleted in its name.
	Live client.Reader
	// Targets connects to target clusters.
	Targets Targets
	// Recorder records events on CloudConfigs.
	Recorder events.EventRecorder
	// Clock is the time.
	Clock clock.Clock
	// CleanupTimeout is how long the deletion of a CloudConfig waits for a target cluster that cannot be
	// reached before it leaves there what cannot be removed.
	CleanupTimeout time.Duration
	// TargetNamespace holds the Secrets of nodes in target clusters; target.DefaultNamespace when empty.
	TargetNamespace string
	// WatchFilterValue restricts the objects by label cluster.x-k8s.io/watch-filter; empty for all.
	WatchFilterValue string

	// JoinOverdueAfter is the time after which a machine that could join and has not is reported; DefaultJoinOverdueAfter when zero.
	JoinOverdueAfter time.Duration
	// Outcomes says what has become of certificate requests; nil when that is not known.
	Outcomes *approval.Outcomes

	// overdue counts joins.
	overdue overdue
	// turns bounds how many workers talk to one target cluster; nil for no bound.
	turns *bulkhead.Bulkhead[client.ObjectKey]
}

// step does one thing. A step that cannot go on calls scope.awaits, which ends the reconcile.
type step func(context.Context, *scope) error

// +kubebuilder:rbac:groups=bootstrap.millwright.dev,resources=cloudconfigs,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=bootstrap.millwright.dev,resources=cloudconfigs/status,verbs=patch
// +kubebuilder:rbac:groups=bootstrap.millwright.dev,resources=cloudconfigs/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machines,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;create;delete
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch
// +kubebuilder:rbac:groups="",resources=events,verbs=create;patch

// Reconcile does, in this order and only as far as it gets:
//  1. find the Machine, if the CloudConfig is that one's, and its Cluster; stop when paused
//  2. put the finalizer on the CloudConfig
//  3. await the Cluster's readiness and a turn at its target cluster, confirm whose it is, await the connection
//  4. make the user data, once, and what it needs in the target cluster; publish it
//  5. await the provider ID; write the node's Secret and its join token
//  6. after the join, take back the tokens and let the Node itself read its Secret; before, see how far the machine has come
//
// and writes the status, once, if it has changed.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	result, err := r.reconcile(ctx, req)
	if apierrors.IsConflict(err) {
		// Somebody else was faster. To lose a race is no error, and what is read then is up to date.
		return ctrl.Result{RequeueAfter: time.Second}, nil
	}
	return result, err
}

func (r *Reconciler) reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	config := &bootstrapv1.CloudConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, config); err != nil {
		r.overdue.forget(req.NamespacedName)
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	original := config.DeepCopy()
	s := &scope{config: config, now: r.Clock.Now()}
	defer s.leaveTurn()
	if err := r.findOwners(ctx, s); err != nil {
		return ctrl.Result{}, err
	}
	if paused := pausedBy(s); paused != "" {
		return ctrl.Result{}, r.patchStatus(ctx, original, config, pausedConditions(s, paused))
	}
	if !config.DeletionTimestamp.IsZero() {
		return r.reconcileDelete(ctx, s, original)
	}
	if s.machine != nil && !controllerutil.ContainsFinalizer(config, bootstrapv1.Finalizer) {
		if err := r.addFinalizer(ctx, config); err != nil {
			// One that is gone owns nothing: what was made for it in the target cluster would stay for ever.
			return ctrl.Result{}, client.IgnoreNotFound(errors.Cause(err))
		}
		original = config.DeepCopy()
	}
	return r.reconcileNormal(ctx, s, original)
}

func (r *Reconciler) reconcileNormal(ctx context.Context, s *scope, original *bootstrapv1.CloudConfig) (ctrl.Result, error) {
	err := run(ctx, s, []step{
		r.awaitCluster,
		r.awaitTurn,
		r.confirmOwner,
		r.restore,
		r.connect,
		r.readEndpoint,
		r.ensureDataSecret,
		r.ensureAccess,
		r.publish,
		r.syncNodeSecret,
		r.retireTokens,
		r.followJoin,
	})
	if apierrors.IsConflict(errors.Cause(err)) {
		// What is written now would be about the past.
		return ctrl.Result{}, err
	}
	if s.staysSaid() {
		return s.result(), err
	}
	err = s.explain(err)
	if patchErr := r.patchStatus(ctx, original, s.config, conclude(s)); patchErr != nil {
		return ctrl.Result{}, patchErr
	}
	r.reportOverdue(s, original)
	return s.result(), err
}

// run does the steps in order and stops at the first that fails or waits.
func run(ctx context.Context, s *scope, steps []step) error {
	for _, step := range steps {
		if err := step(ctx, s); err != nil {
			return err
		}
		if s.wait != nil {
			return nil
		}
	}
	return nil
}

// result turns the deadline of the scope into a result.
func (s *scope) result() ctrl.Result {
	if s.wakeAt.IsZero() {
		return ctrl.Result{}
	}
	return ctrl.Result{RequeueAfter: max(s.wakeAt.Sub(s.now), time.Second)}
}

func (r *Reconciler) addFinalizer(ctx context.Context, config *bootstrapv1.CloudConfig) error {
	original := config.DeepCopy()
	controllerutil.AddFinalizer(config, bootstrapv1.Finalizer)
	err := r.Client.Patch(ctx, config, client.MergeFromWithOptions(original, client.MergeFromWithOptimisticLock{}))
	return errors.Wrap(err, "adding the finalizer")
}

func clusterKey(machine *clusterv1.Machine) client.ObjectKey {
	return client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
}
