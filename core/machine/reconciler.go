// Package machine reconciles Machines: it observes bootstrap data, infrastructure and Node until the Machine
// runs, synchronizes the Node with the Machine, and deletes everything in order. See README.md.
package machine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/contracts/controller/wake"
	"millwright.dev/core/drain"
	"millwright.dev/core/external"
	"millwright.dev/core/remote"
)

// kindMachine is the kind as it appears in owner references.
var kindMachine = clusterv1.GroupVersion.WithKind("Machine")

// Reconciler reconciles Machines.
type Reconciler struct {
	// Client reads from the cache and writes to the management cluster.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Connections gives access to the Nodes.
	Connections *remote.Connections
	// Kinds reads bootstrap and infrastructure objects.
	Kinds *external.Kinds
	// Recorder writes events.
	Recorder events.EventRecorder
	// Clock is the time.
	Clock clock.WithDelayedExecution
	// WatchFilter restricts the controller to Machines with this value of the watch label; "" is all.
	WatchFilter string
	// Options are what flags set.
	Options Options
	// Written are the versions of the Machines that this controller has written; nil for a new list.
	Written *persist.Versions
	// AddHealth, if set, adds to the status of a Machine that is about to be written that the health checks find it healthy, if they do
	// so for the first time.
	AddHealth func(ctx context.Context, cluster *clusterv1.Cluster, machine *clusterv1.Machine, now time.Time) error

	drainer *drain.Drainer
	// reportedRules are the invalid MachineDrainRules that events have been recorded about.
	reportedRules reportedOnce
	waker         *wake.Waker
	// syncs are the changes of Nodes that failed.
	syncs syncAttempts
	// drains are the drains that are over, of Machines that still exist.
	drains finishedDrains
	// observations are the referenced objects that have been read.
	observations observations
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinesets;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile reconciles one Machine:
//
//  1. read it, its Cluster and its owners;
//  2. paused: report that and leave it alone;
//  3. being deleted: observe what exists, then delete it step by step;
//  4. otherwise: finalizer and owner, bootstrap data, infrastructure, Node;
//  5. save: write metadata and spec, derive conditions and phase, write the status, record events.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	machine := &clusterv1.Machine{}
	if err := r.Client.Get(ctx, request.NamespacedName, machine); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading Machine %s", request)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, machine) {
		// It is another core's now, which drains its Node itself.
		r.forget(request.NamespacedName)
		r.withdraw(machine)
		return ctrl.Result{}, nil
	}
	if wait := r.Written.Behind(machine); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s, err := r.newScope(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	result := r.run(ctx, s)
	if s.Gone {
		r.withdraw(machine)
		return result.Result()
	}
	if s.skipSave || s.undetermined() || s.quiet && result.Err() == nil {
		return result.Result()
	}
	return result.And(r.save(ctx, s)).Result()
}

// run runs the steps for the state of the Machine.
func (r *Reconciler) run(ctx context.Context, s *scope) outcome.Outcome {
	switch {
	case s.paused():
		r.drainer.Forget(s.Key())
		r.withdraw(s.Original)
		return outcome.Continue()
	case s.Deleting():
		return r.reconcileDelete(ctx, s)
	case s.cluster == nil:
		return outcome.Wait()
	}
	return outcome.InOrder(ctx, s, r.ensureFinalizer, r.adopt, r.reconcileNormal)
}

// reconcileNormal runs the steps that do not depend on one another.
func (r *Reconciler) reconcileNormal(ctx context.Context, s *scope) outcome.Outcome {
	return outcome.All(ctx, s, r.reconcileBootstrap, r.reconcileInfrastructure, r.reconcileNode, r.reconcileCertificates, r.reconcilePreserved)
}

// save writes what the steps have changed, and records events about it. When the API server refuses metadata or spec, the status
// reports that.
func (r *Reconciler) save(ctx context.Context, s *scope) outcome.Outcome {
	changed := *s.Object
	var result outcome.Outcome
	written, err := s.Save(ctx, func(refused error) bool {
		if refused != nil {
			s.revert(&changed, refused)
		}
		result = s.setStatus()
		r.addHealth(ctx, s)
		return true
	})
	if written.Status {
		s.recordConditionEvents()
		s.recordProgressEvents()
		s.events.Record(r.Recorder, s.Object)
	}
	return result.And(outcome.FromError(err))
}

// forget drops what is kept in memory of a Machine.
func (r *Reconciler) forget(key types.NamespacedName) {
	r.drainer.Forget(key)
	r.drains.forget(key)
	r.syncs.forget(key)
	r.observations.forget(key)
}

// withdraw drops the requests of a Machine to the target cluster that have not been sent.
func (r *Reconciler) withdraw(machine *clusterv1.Machine) {
	r.Connections.Withdraw(
		types.NamespacedName{Namespace: machine.Namespace, Name: machine.Spec.ClusterName},
		client.ObjectKeyFromObject(machine),
	)
}

// addHealth adds the first assessment of the health checks to a status that is written anyway. It is theirs: they write it
// themselves where nothing else is to be written, where the Node is in doubt, and where this write fails.
func (r *Reconciler) addHealth(ctx context.Context, s *scope) {
	if r.AddHealth == nil || s.node == nil || s.nodeErr != nil || s.identity.contested != "" || s.paused() || s.ofAnotherCore() ||
		equality.Semantic.DeepEqual(s.Original.Status, s.Object.Status) {
		return
	}
	if err := r.AddHealth(ctx, s.cluster, s.Object, s.Now); err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("The health assessment is not part of this write; the health checks write it themselves",
			"reason", err.Error())
	}
}
