// Package cluster reconciles Clusters: it decides when a Cluster is initialized, mirrors what its
// infrastructure and control plane report, and deletes its contents in order. See README.md.
package cluster

import (
	"context"

	"github.com/pkg/errors"
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
	"millwright.dev/core/external"
	"millwright.dev/core/remote"
	"millwright.dev/core/safety/freeze"
)

// kindCluster is the kind as it appears in owner references.
var kindCluster = clusterv1.GroupVersion.WithKind(clusterv1.ClusterKind)

// Reconciler reconciles Clusters.
type Reconciler struct {
	// Client reads from the cache and writes to the management cluster.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Connections knows which target clusters answer.
	Connections *remote.Connections
	// Freezer reports when nothing is replaced; nil for never.
	Freezer Freezer
	// Kinds reads infrastructure clusters and control planes.
	Kinds *external.Kinds
	// Recorder writes events.
	Recorder events.EventRecorder
	// Clock has the time.
	Clock clock.Clock
	// WatchFilter restricts the controller to Clusters with this value of the watch label; "" is all.
	WatchFilter string
	// Options are what flags set.
	Options Options
	// Written are the versions of the Clusters that this controller has written; nil for a new list.
	Written *persist.Versions

	kubeconfigs kubeconfigs
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments;machinesets;machines,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Freezer reports when no Machine of a Cluster is replaced: package freeze.
type Freezer interface {
	freeze.Source
	// Dismiss ends the grace after an outage.
	Dismiss(cluster client.ObjectKey)
	// Count has a Cluster in the metric of those that are frozen.
	Count(cluster client.ObjectKey)
	// Forget drops what is known of a Cluster that no longer exists.
	Forget(cluster client.ObjectKey)
}

// Reconcile reconciles one Cluster:
//
//  1. read it, and what it refers to;
//  2. paused: report that and leave it alone;
//  3. being deleted: delete workers, control plane, its Machines and infrastructure in order, then remove the finalizer;
//  4. otherwise: finalizer, infrastructure, control plane, connection, kubeconfig, workers;
//  5. save: write metadata and spec, derive conditions and phase, write the status, record events.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, request.NamespacedName, cluster); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(request.NamespacedName)
		}
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading Cluster %s", request)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, cluster) {
		// It is another core's now. Should it come back, that one may have written the Secret.
		r.kubeconfigs.forget(request.NamespacedName)
		return ctrl.Result{}, nil
	}
	if wait := r.Written.Behind(cluster); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s := r.newScope(cluster)

	var result outcome.Outcome
	switch {
	case s.paused():
	case s.Deleting():
		result = outcome.InOrder(ctx, s, r.deleteWorkers, r.deleteControlPlane, r.deleteControlPlaneMachines, r.deleteInfrastructure, r.release)
	default:
		result = outcome.InOrder(ctx, s, r.ensureFinalizer, r.reconcileNormal)
	}
	if s.Gone || s.skipSave {
		return result.Result()
	}
	return result.And(r.save(ctx, s)).Result()
}

// forget drops what is known of a Cluster that no longer exists.
func (r *Reconciler) forget(cluster types.NamespacedName) {
	r.kubeconfigs.forget(cluster)
	if r.Freezer != nil {
		r.Freezer.Forget(cluster)
	}
}

// reconcileNormal runs the steps that do not depend on one another, only on the finalizer.
func (r *Reconciler) reconcileNormal(ctx context.Context, s *scope) outcome.Outcome {
	return outcome.All(ctx, s, r.reconcileInfrastructure, r.reconcileControlPlane, r.reconcileConnection, r.reconcileKubeconfig,
		r.reconcileFreeze, r.readWorkers)
}

// ensureFinalizer keeps the Cluster until its contents are deleted. It is written by itself and at once, since everything else
// depends on it: an object whose owner no longer exists is deleted by the garbage collector.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	err := s.EnsureFinalizer(ctx, clusterv1.ClusterFinalizer)
	switch {
	case persist.Gone(err):
		// The watch has yet to report it.
		s.skipSave = true
		return outcome.Wait()
	case persist.LostRace(err):
		s.skipSave = true
	case err != nil:
		s.finalizerRefused = err
	}
	return outcome.FromError(err)
}

// save writes what the steps have changed, and records events about it. When the API server refuses metadata or spec, the status
// reports that.
func (r *Reconciler) save(ctx context.Context, s *scope) outcome.Outcome {
	var deadline outcome.Outcome
	// That an annotation goes may be all that is written, and refused: nothing that was observed is lost then.
	annotationAlone := s.unfreeze && s.Object.Spec.ControlPlaneEndpoint == s.Original.Spec.ControlPlaneEndpoint
	written, err := s.Save(ctx, func(refused error) bool {
		r.endFreeze(s, refused)
		if refused != nil && !annotationAlone {
			// What is initialized by what was refused is not: the control plane endpoint comes with the infrastructure.
			s.specRefused = refused
			s.Object.Status.Initialization = *s.Original.Status.Initialization.DeepCopy()
		}
		deadline = s.setStatus()
		return true
	})
	if written.Status {
		s.recordEvents()
		s.events.Record(r.Recorder, s.Object)
	}
	return deadline.And(outcome.FromError(err))
}
