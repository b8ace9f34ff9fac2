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

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/contracts/controller/bulkhead"
	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
)

// Targets returns clients of target clusters without a cache; a *remote.NotConnectedError while there is no connection.
type Targets interface {
	GetUncachedClient(ctx context.Context, cluster client.ObjectKey) (client.Client, error)
}

// Reconciler gives machines what they need to become Nodes, and takes it away again.
type Reconciler struct {
	// Client reads CloudConfigs, Machines and Clusters from the cache, and writes.
	Client client.Client
	// APIReader reads Secrets of the management cluster, which a cache would have to read all, and the Machine before anything
	// is written or deleted in its name.
	APIReader client.Reader
	// Targets connects to target clusters.
	Targets Targets
	// Recorder records events on CloudConfigs.
	Recorder events.EventRecorder
	// Clock is the time.
	Clock clock.Clock
	// CleanupTimeout is how long the deletion of a CloudConfig waits for a target cluster that cannot be
	// reached before it leaves there what cannot be removed.
	CleanupTimeout time.Duration
	// TargetNamespace holds the Secrets of nodes in target clusters; nodeaccess.DefaultNamespace when empty.
	TargetNamespace string
	// TargetKubeconfig is what the connections were given as remote.Options.Kubeconfig: the one target cluster of all Clusters. Empty,
	// machines learn of their API server from the kubeconfig Secret of their Cluster.
	TargetKubeconfig string
	// WatchFilter restricts the controller to CloudConfigs with this value of the watch label; "" is all.
	WatchFilter string

	// JoinOverdueAfter is the time after which a machine that could join and has not is reported; DefaultJoinOverdueAfter when zero.
	JoinOverdueAfter time.Duration
	// Outcomes has what has become of certificate requests; nil when that is not known.
	Outcomes *approval.Outcomes

	// overdue counts joins.
	overdue overdue
	// unconnected are those that wait for a connection.
	unconnected unconnected
	// turns bounds how many workers send requests to one target cluster; nil for no bound.
	turns *bulkhead.Bulkhead[client.ObjectKey]
}

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
	config := &bootstrapv1.CloudConfig{}
	if err := r.Client.Get(ctx, req.NamespacedName, config); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(req.NamespacedName)
		}
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading CloudConfig %s", req)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, config) {
		r.forget(req.NamespacedName)
		return ctrl.Result{}, nil
	}
	s := r.newScope(config)
	defer s.leaveTurn()
	// Events are about requests to the target cluster that have succeeded, whatever comes after them.
	defer func() { s.events.Record(r.Recorder, s.Original) }()

	result := r.findOwners(ctx, s)
	switch {
	case !result.Finished():
		return result.Result()
	case s.paused():
	case s.Deleting():
		result = outcome.InOrder(ctx, s, r.beginDelete, r.cleanTarget, r.deleteDataSecret, r.removeFinalizer)
	default:
		result = outcome.InOrder(ctx, s, r.ensureFinalizer, r.awaitCluster, r.awaitTurn, r.confirmOwner, r.restore, r.connect, r.readEndpoint,
			r.ensureDataSecret, r.ensureAccess, r.publish, r.syncNodeSecret, r.retireTokens, r.followJoin)
	}
	if s.Gone || s.skipSave || persist.LostRace(result.Err()) {
		// After a conflict the status would be about an object of the past.
		return result.Result()
	}
	s.explain(result.Err())
	return result.And(r.save(ctx, s)).Result()
}

// forget drops what is kept in memory of a CloudConfig.
func (r *Reconciler) forget(config client.ObjectKey) {
	r.overdue.forget(config)
	r.unconnected.remove(config)
}

// ensureFinalizer keeps the CloudConfig until what was created for its Machine is removed.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	if s.machine == nil {
		return outcome.Continue()
	}
	err := s.EnsureFinalizer(ctx, bootstrapv1.Finalizer)
	if persist.Gone(err) {
		// One that no longer exists owns nothing: what was created for it in the target cluster would stay for ever.
		s.skipSave = true
		return outcome.Wait()
	}
	return outcome.FromError(ofManagement(err))
}

// save writes the status, if it has changed.
func (r *Reconciler) save(ctx context.Context, s *scope) outcome.Outcome {
	kept := false
	_, err := s.Save(ctx, func(error) bool {
		if kept = s.keepsConditions(); kept {
			return false
		}
		s.setStatus()
		return true
	})
	if err == nil && !kept && !s.paused() && !s.Deleting() {
		r.overdue.follow(s)
		s.addStatusEvents()
	}
	return outcome.FromError(err)
}

func clusterKey(machine *clusterv1.Machine) client.ObjectKey {
	return client.ObjectKey{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}
}
