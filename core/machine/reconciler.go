// Package machine reconciles Machines: it follows bootstrap data, infrastructure and Node until the Machine
// runs, keeps Node and Machine in step, and takes everything down again in order. See README.md.
package machine

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
	// Clock tells the time.
	Clock clock.WithDelayedExecution
	// Options are what flags set.
	Options Options

	drainer *drain.Drainer
	// reportedRules are the invalid MachineDrainRules that events have been emitted about.
	reportedRules reportedOnce
	wake          waker
	versions      persist.Versions
	// syncs are the changes of Nodes that failed.
	syncs syncAttempts
	// turns are the Nodes that were initialized.
	turns turns
	// drains are the drains that are over, of Machines that are not gone yet.
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

// Reconcile brings one Machine on:
//
//  1. read it, its Cluster and its owners;
//  2. paused: say so and leave it alone;
//  3. being deleted: observe what there is, then take it down step by step;
//  4. otherwise: finalizer and owner, bootstrap data, infrastructure, Node;
//  5. judge: conditions and phase;
//  6. write what changed, then record events about it.
func (r *Reconciler) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	machine := &clusterv1.Machine{}
	if err := r.Client.Get(ctx, request.NamespacedName, machine); err != nil {
		if apierrors.IsNotFound(err) {
			r.drainer.Forget(request.NamespacedName)
			r.drains.forget(request.NamespacedName)
			r.syncs.forget(request.NamespacedName)
			r.turns.forget(request.NamespacedName)
			r.observations.forget(request.NamespacedName)
		}
		return ctrl.Result{}, errors.Wrapf(client.IgnoreNotFound(err), "reading Machine %s", request)
	}
	if !predicates.MatchesWatchLabel(r.Options.WatchFilter, machine) {
		// It is another core's now, which drains its Node itself.
		r.drainer.Forget(request.NamespacedName)
		r.drains.forget(request.NamespacedName)
		r.syncs.forget(request.NamespacedName)
		r.observations.forget(request.NamespacedName)
		r.turns.forget(request.NamespacedName)
		r.withdraw(machine)
		return ctrl.Result{}, nil
	}
	if wait := r.versions.Behind(machine); wait > 0 {
		return outcome.WaitFor(wait).Result()
	}
	s, err := r.read(ctx, machine)
	if err != nil {
		return ctrl.Result{}, err
	}
	result := r.run(ctx, s)
	if s.gone {
		r.withdraw(machine)
		return result.Result()
	}
	if s.undetermined() || s.quiet && result.Err() == nil {
		return result.Result()
	}
	return result.And(r.conclude(ctx, s)).Result()
}

// withdraw forgets what was to be sent to the target cluster for a Machine, and has not been.
func (r *Reconciler) withdraw(machine *clusterv1.Machine) {
	r.Connections.Withdraw(types.NamespacedName{Namespace: machine.Namespace, Name: machine.Spec.ClusterName}, client.ObjectKeyFromObject(machine))
}

// conclude writes metadata and spec, judges, and writes the status: in this order, since the conditions name the
// generation that they are about. When the API server refuses metadata or spec, the status says so. A record that the Node
// waits for is written alone: the event of that write brings the next reconcile, which knows more.
func (r *Reconciler) conclude(ctx context.Context, s *scope) outcome.Outcome {
	changed := *s.machine
	base, err := persist.Object(ctx, r.Client, s.original, s.machine, statusOf)
	if err != nil && persist.Refusal(err) == "" {
		return outcome.FromError(client.IgnoreNotFound(err))
	}
	if err != nil {
		s.takeBack(&changed, err)
	}
	if s.recording != nil {
		if err == nil {
			err = s.recordKept()
		}
		if err == nil {
			r.versions.Wrote(s.machine)
			return outcome.Wait()
		}
		r.notRecorded(s, err)
	}
	s.withholdLink()
	deadline := s.judge().And(outcome.FromError(err))
	written, err := persist.Status(ctx, r.Client, base, s.machine, statusOf)
	if err != nil {
		return deadline.And(outcome.FromError(client.IgnoreNotFound(err)))
	}
	if s.machine.ResourceVersion != s.original.ResourceVersion {
		r.versions.Wrote(s.machine)
	}
	if written {
		r.sendEvents(s)
	}
	return deadline
}

// run runs the steps that the state of the Machine calls for.
func (r *Reconciler) run(ctx context.Context, s *scope) outcome.Outcome {
	switch {
	case s.paused():
		r.drainer.Forget(s.key())
		r.withdraw(s.original)
		return outcome.Continue()
	case s.deleting():
		return r.reconcileDelete(ctx, s)
	case s.cluster == nil:
		return outcome.Wait()
	}
	adopted := outcome.InOrder(ctx, s, r.ensureFinalizer, r.adopt)
	if !adopted.Finished() {
		return adopted
	}
	return outcome.All(ctx, s, r.reconcileBootstrap, r.reconcileInfrastructure, r.reconcileNode, r.reconcileCertificates)
}

func statusOf(m *clusterv1.Machine) *clusterv1.MachineStatus { return &m.Status }
