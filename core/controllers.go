package main

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"millwright.dev/contracts/controller/events"
	"millwright.dev/contracts/controller/manager"
	"millwright.dev/contracts/controller/persist"
	shared "millwright.dev/contracts/remote"
	"millwright.dev/contracts/version"
	"millwright.dev/core/cluster"
	"millwright.dev/core/drain"
	"millwright.dev/core/external"
	"millwright.dev/core/features"
	"millwright.dev/core/index"
	"millwright.dev/core/machine"
	"millwright.dev/core/machinedeployment"
	"millwright.dev/core/machinehealth"
	"millwright.dev/core/machinehealthcheck"
	"millwright.dev/core/machineset"
	"millwright.dev/core/remote"
	"millwright.dev/core/safety/freeze"
	"millwright.dev/core/safety/overshoot"
)

// The connections to target clusters.
// +kubebuilder:rbac:groups=cluster.x-k8s.io,resources=clusters,verbs=get;list;watch
// +kubebuilder:rbac:groups="",resources=secrets,verbs=get;list;watch

// addControllers adds indexes, target connections and controllers to the manager.
func addControllers(ctx context.Context, mgr ctrl.Manager, o *options) error {
	if err := index.Register(ctx, mgr.GetFieldIndexer()); err != nil {
		return err
	}
	connections := remote.New(shared.Options{
		Secrets: mgr.GetAPIReader(), Kubeconfig: o.targetKubeconfig,
		Scheme: mgr.GetScheme(), UserAgent: name, QPS: o.targetQPS, Burst: o.targetBurst,
	})
	targets := &shared.Reconciler{
		Client:       mgr.GetClient(),
		Connections:  connections.Connections,
		WatchFilter:  o.WatchFilter,
		WatchSecrets: true,
	}
	if err := targets.SetupWithManager(mgr, concurrency(o.targetConcurrency)); err != nil {
		return err
	}
	freezer := freeze.New(o.freeze, clock.RealClock{}, freeze.Connected{Connections: connections})
	freezer.Measure(ctx)
	resolver := &version.Resolver{Reader: mgr.GetClient()}
	informers := external.NewInformers(resolver, mgr.GetCache(), mgr.GetAPIReader(), mgr.GetRESTMapper())
	judge := newJudge(mgr, o, connections, freezer)
	if err := addMachineControllers(mgr, o, connections, informers, freezer, judge); err != nil {
		return err
	}
	if err := addSetControllers(mgr, o, connections, informers, freezer); err != nil {
		return err
	}
	return addHealthControllers(mgr, o, judge)
}

// newJudge returns the controller that judges Machines.
func newJudge(mgr ctrl.Manager, o *options, connections *remote.Connections, freezer freeze.Source) *machinehealth.Reconciler {
	return &machinehealth.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Connections: connections,
		Freeze:      freezer,
		Results:     &machinehealth.Results{},
		Recorder:    events.For(mgr, "machinehealth"),
		Clock:       clock.RealClock{},
		Options:     machinehealth.Options{Defaults: o.health},
		WatchFilter: o.WatchFilter,
	}
}

// addHealthControllers adds the one that judges Machines, and that of MachineHealthChecks, which reports what it has found.
func addHealthControllers(mgr ctrl.Manager, o *options, judge *machinehealth.Reconciler) error {
	if err := judge.SetupWithManager(mgr, concurrency(o.machineHealthCheckConcurrency)); err != nil {
		return err
	}
	checks := &machinehealthcheck.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Results:     judge.Results,
		Recorder:    events.For(mgr, "machinehealthcheck"),
		Clock:       clock.RealClock{},
		WatchFilter: o.WatchFilter,
	}
	return checks.SetupWithManager(mgr, concurrency(o.machineHealthCheckConcurrency))
}

// addMachineControllers adds those of Clusters and Machines, which read objects of providers and connect to target clusters.
func addMachineControllers(
	mgr ctrl.Manager, o *options, connections *remote.Connections, informers *external.Informers, freezer *freeze.Freezer,
	judge *machinehealth.Reconciler,
) error {
	kinds := func() *external.Kinds {
		return &external.Kinds{Informers: informers, Clock: clock.RealClock{}}
	}
	clusters := &cluster.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Connections: connections,
		Freezer:     freezer,
		Kinds:       kinds(),
		Clock:       clock.RealClock{},
		Recorder:    events.For(mgr, "cluster"),
		Options:     cluster.Options{RemoteConnectionGracePeriod: o.remoteConnectionGrace},
		WatchFilter: o.WatchFilter,
	}
	if err := clusters.SetupWithManager(mgr, concurrency(o.clusterConcurrency)); err != nil {
		return err
	}
	machines := &machine.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Connections: connections,
		Kinds:       kinds(),
		Clock:       clock.RealClock{},
		Recorder:    events.For(mgr, "machine"),
		Options:     o.machineOptions(),
		WatchFilter: o.WatchFilter,
		AddHealth:   judge.AddFirst,
	}
	return machines.SetupWithManager(mgr, concurrency(o.machineConcurrency))
}

// addSetControllers adds those of MachineSets and MachineDeployments, which share what was written to MachineSets.
func addSetControllers(
	mgr ctrl.Manager, o *options, connections *remote.Connections, informers *external.Informers, freezer *freeze.Freezer,
) error {
	written, guard := &persist.Versions{}, &overshoot.Guard{}
	sets := &machineset.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Informers:   informers,
		WatchFilter: o.WatchFilter,
		Written:     written,
		Preflight:   o.preflight,
		Remediation: o.remediation,
		Freeze:      freezer,
		Overshoot:   guard,

		PreserveTimeout: o.preserveTimeout, PreserveFailedMax: o.preserveFailedMax,
	}
	if err := sets.SetupWithManager(mgr, concurrency(o.machineSetConcurrency)); err != nil {
		return err
	}
	pattern := &overshoot.Reconciler{
		Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), Guard: guard, Options: o.overshoot, WatchFilter: o.WatchFilter,
	}
	if err := overshoot.Setup(mgr, pattern, concurrency(o.machineDeploymentConcurrency)); err != nil {
		return err
	}
	deployments := &machinedeployment.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		WatchFilter: o.WatchFilter,
		Sets:        written,
		Overshoot:   guard,
		Node:        connections.Node,
		Informers:   informers,
	}
	return deployments.SetupWithManager(mgr, concurrency(o.machineDeploymentConcurrency))
}

func concurrency(workers int) controller.Options {
	return manager.ControllerOptions[reconcile.Request](workers)
}

func (o *options) machineOptions() machine.Options {
	drainTimeout := o.drainTimeout
	if drainTimeout == 0 {
		drainTimeout = -1
	}
	return machine.Options{
		DrainTimeout:                drainTimeout,
		ForceDetach:                 o.forceDetach,
		Drain:                       drain.Options{DetachTimeout: o.pvDetachTimeout, ReattachTimeout: o.pvReattachTimeout},
		RemoteConditionsGracePeriod: o.remoteConditionsGrace,
		SyncLabels:                  o.syncLabels, SyncAnnotations: o.syncAnnotations,
		PropagateTaints: features.TaintPropagation(), KeepOutdatedFromScaleDown: o.keepOutdatedFromScaleDown,
		PreserveByNode: o.preserveByNode,
	}
}
