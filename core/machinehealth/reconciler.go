package machinehealth

import (
	"context"
	"time"

	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/core/health"
	"millwright.dev/core/remote"
	"millwright.dev/core/safety/freeze"
)

// Options are what flags set.
type Options struct {
	// Defaults is the policy for Machines that no MachineHealthCheck selects.
	Defaults health.Defaults
}

// Reconciler judges the Machines of one Cluster after the other. Its requests are the names of Clusters.
type Reconciler struct {
	// Client reads from the cache and writes to the management cluster.
	Client client.Client
	// APIReader reads from the API server: remediation templates and requests, which are of any kind and few.
	APIReader client.Reader
	// Connections has the Nodes.
	Connections *remote.Connections
	// Freeze reports when nothing may be concluded; nil for never.
	Freeze freeze.Source
	// Results is where the results for MachineHealthChecks go.
	Results *Results
	// Recorder writes events.
	Recorder events.EventRecorder
	// Clock has the time.
	Clock clock.PassiveClock
	// WatchFilter restricts the controller to MachineHealthChecks, and for the default policy to Machines, with this value of the
	// watch label; "" is all.
	WatchFilter string
	// Options are what flags set.
	Options Options
	// Written are the versions of the Machines that this controller has written; nil for a new list.
	Written *persist.Versions

	memory memory
	nodes  marks
	wake   func(cluster client.ObjectKey, after time.Duration)
	// recheck, if not zero, is for the constant of that name, in tests.
	recheck time.Duration
	// onRound is called with each round, in tests.
	onRound func(reconcile.Request)
}

// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters;machinehealthchecks;machinedeployments,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines,verbs=get;list;watch
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=machines/status,verbs=patch
// +kubebuilder:rbac:groups=events.k8s.io,resources=events,verbs=create;patch

// Reconcile does one round in a Cluster:
//
//  1. read the Cluster, its Machines and MachineHealthChecks from the caches; if it is paused or being deleted, leave them alone;
//  2. judge each Machine by all policies that are for it;
//  3. count for each MachineHealthCheck, and decide whether it allows remediation;
//  4. create and delete requests of external remediation;
//  5. write the conditions of the Machines that have changed;
//  6. publish the results, and come back when time alone changes one.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	if r.onRound != nil {
		r.onRound(request)
	}
	s, err := r.newRound(ctx, request.NamespacedName)
	if err != nil {
		return ctrl.Result{}, err
	}
	if s.resting() {
		return ctrl.Result{}, nil
	}
	s.judge(r)
	s.count()
	end := outcome.All(ctx, s, r.remediateExternally, r.writeMachines)
	r.publish(s)
	if !s.next.IsZero() {
		if rest := s.next.Sub(s.now); rest < maxWait {
			end = end.And(outcome.ContinueAfter(rest))
		}
	}
	return end.Result()
}

// maxWait is how far ahead a round is planned. What is further away, such as an end of a freeze that is not known, comes with an
// event.
const maxWait = 24 * time.Hour

func (r *Reconciler) freeze() freeze.Source {
	if r.Freeze == nil {
		return freeze.Never{}
	}
	return r.Freeze
}
