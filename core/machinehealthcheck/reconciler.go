package machinehealthcheck

import (
	"context"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/controller/predicates"
	"millwright.dev/core/machinehealth"
)

// Reconciler reconciles MachineHealthChecks.
type Reconciler struct {
	// Client reads from the cache and writes to the management cluster.
	Client client.Client
	// APIReader reads from the API server.
	APIReader client.Reader
	// Results has what was found in judging the Machines.
	Results *machinehealth.Results
	// Recorder writes events.
	Recorder events.EventRecorder
	// Clock has the time.
	Clock clock.PassiveClock
	// WatchFilter restricts the controller to MachineHealthChecks with this value of the watch label; "" is all.
	WatchFilter string
	// Written are the versions of the MachineHealthChecks that this controller has written; nil for a new list.
	Written *persist.Versions
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinehealthchecks,verbs=get;list;watch;patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machinehealthchecks/status,verbs=patch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile reconciles one MachineHealthCheck:
//
//  1. read it and its Cluster;
//  2. paused: report that and leave it alone;
//  3. make it a child of its Cluster;
//  4. take the latest result of the round in which its Machines were judged;
//  5. save: write label and owner, derive the status from the result, record events.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	check := &clusterv1.MachineHealthCheck{}
	if err := r.Client.Get(ctx, request.NamespacedName, check); err != nil {
		if apierrors.IsNotFound(err) {
			r.Results.Forget(request.NamespacedName)
			shownHeld.set(request.NamespacedName, "", 0)
		}
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading MachineHealthCheck %s", request)
	}
	if !predicates.MatchesWatchLabel(r.WatchFilter, check) || !check.DeletionTimestamp.IsZero() {
		shownHeld.set(request.NamespacedName, "", 0)
		return ctrl.Result{}, nil
	}
	if wait := r.Written.Behind(check); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s, err := r.newScope(ctx, check)
	if err != nil {
		return ctrl.Result{}, err
	}
	end := outcome.Continue()
	if !s.paused() && s.cluster != nil {
		end = outcome.All(ctx, s, r.adopt, r.takeResult)
	}
	return end.And(r.save(ctx, s)).Result()
}

// save writes what has changed, and records events about it.
func (r *Reconciler) save(ctx context.Context, s *scope) outcome.Outcome {
	written, err := s.Save(ctx, func(refused error) bool {
		s.refused = refused
		s.setStatus()
		return true
	})
	s.measure()
	if written.Status {
		s.recordEvents(r.Recorder)
	}
	return outcome.FromError(err)
}
