// Package cluster reconciles Clusters: it decides when a Cluster is initialized, mirrors what its
// infrastructure and control plane say, and deletes its contents in order. See README.md.
package cluster

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/external"
	"millwright.dev/core/remote"
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
	// Kinds reads infrastructure clusters and control planes.
	Kinds *external.Kinds
	// Recorder writes events.
	Recorder events.EventRecorder
	// Clock tells the time.
	Clock clock.Clock
	// Options are what flags set.
	Options Options

	versions persist.Versions
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters/finalizers,verbs=update
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinedeployments;machinesets;machines,verbs=get;list;watch;delete
// +kubebuilder:rbac:groups=apiextensions.k8s.io,resources=customresourcedefinitions,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile brings one Cluster on:
//
//  1. read it, and what it refers to;
//  2. paused: say so and leave it alone;
//  3. being deleted: delete workers, control plane, its Machines and infrastructure in order, then let it go;
//  4. otherwise: finalizer, infrastructure, control plane, connection, workers;
//  5. judge: conditions and phase;
//  6. write what changed, then tell about it.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	cluster := &clusterv1.Cluster{}
	if err := r.Client.Get(ctx, request.NamespacedName, cluster); err != nil {
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading Cluster %s", request)
	}
	if !predicates.MatchesWatchLabel(r.Options.WatchFilter, cluster) {
		return ctrl.Result{}, nil
	}
	if wait := r.versions.Behind(cluster); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s := r.newScope(cluster)

	var result outcome.Outcome
	switch {
	case s.paused():
	case s.deleting():
		result = outcome.InOrder(ctx, s, r.deleteWorkers, r.deleteControlPlane, r.deleteControlPlaneMachines, r.deleteInfrastructure, r.release)
	default:
		result = outcome.InOrder(ctx, s, r.ensureFinalizer, r.work)
	}
	if s.gone || s.outdated {
		return result.Result()
	}
	return result.And(r.conclude(ctx, s)).Result()
}

// work are the steps that do not depend on one another, only on the finalizer.
func (r *Reconciler) work(ctx context.Context, s *scope) outcome.Outcome {
	return outcome.All(ctx, s, r.reconcileInfrastructure, r.reconcileControlPlane, r.reconcileConnection, r.readWorkers)
}

// ensureFinalizer keeps the Cluster from going before its contents. It is written by itself and at once, since
// everything else rests on it: an object that is owned by a Cluster that is gone is deleted by the garbage collector.
func (r *Reconciler) ensureFinalizer(ctx context.Context, s *scope) outcome.Outcome {
	if !controllerutil.AddFinalizer(s.cluster, clusterv1.ClusterFinalizer) {
		return outcome.Continue()
	}
	err := r.patchMetadata(ctx, s, "adding the finalizer of")
	switch {
	case apierrors.IsNotFound(err):
		// The watch has yet to report it.
		s.outdated = true
		return outcome.Wait()
	case apierrors.IsConflict(err):
		s.outdated = true
	case err != nil:
		s.cluster.Finalizers = s.original.Finalizers
		s.refused = err
	}
	return outcome.FromError(err)
}

// patchMetadata writes the metadata of the scope's Cluster alone and takes over what the server answers.
func (r *Reconciler) patchMetadata(ctx context.Context, s *scope, what string) error {
	patched := s.original.DeepCopy()
	patched.Finalizers = s.cluster.Finalizers
	patch := client.MergeFromWithOptions(s.original, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, patched, patch); err != nil {
		return errors.Wrapf(err, "%s Cluster %s", what, client.ObjectKeyFromObject(s.original))
	}
	r.versions.Wrote(patched)
	s.original = patched
	s.cluster.ObjectMeta = *patched.ObjectMeta.DeepCopy()
	return nil
}

// conclude writes metadata and spec, judges, and writes the status: in this order, since the conditions name the
// generation that they are about. When the API server refuses metadata or spec, the status says so.
func (r *Reconciler) conclude(ctx context.Context, s *scope) outcome.Outcome {
	base, err := persist.Object(ctx, r.Client, s.original, s.cluster, statusOf)
	if err != nil && persist.Refusal(err) == "" {
		return outcome.FromError(client.IgnoreNotFound(err))
	}
	if err != nil {
		// What is initialized by what was refused is not: the control plane endpoint comes with the infrastructure.
		s.unwritten = err
		s.cluster.Status.Initialization = *s.original.Status.Initialization.DeepCopy()
	}
	deadline := s.judge().And(outcome.FromError(err))
	written, err := persist.Status(ctx, r.Client, base, s.cluster, statusOf)
	if err != nil {
		return deadline.And(outcome.FromError(client.IgnoreNotFound(err)))
	}
	if s.cluster.ResourceVersion != s.original.ResourceVersion {
		r.versions.Wrote(s.cluster)
	}
	if written {
		r.tell(s)
	}
	return deadline
}

func statusOf(c *clusterv1.Cluster) *clusterv1.ClusterStatus { return &c.Status }
