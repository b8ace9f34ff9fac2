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
	"millwright.dev/core/healthcheck"
	"millwright.dev/core/index"
	"millwright.dev/core/machine"
	"millwright.dev/core/machinedeployment"
	"millwright.dev/core/machineset"
	"millwright.dev/core/remote"
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
	resolver := &version.Resolver{Reader: mgr.GetClient()}
	if err := addMachineControllers(mgr, o, connections, resolver); err != nil {
		return err
	}
	if err := addSetControllers(mgr, o, resolver); err != nil {
		return err
	}
	notice := &healthcheck.Notice{
		Client:      mgr.GetClient(),
		Recorder:    events.Within(mgr.GetEventRecorder("machinehealthcheck")),
		WatchFilter: o.WatchFilter,
	}
	return notice.SetupWithManager(mgr, concurrency(1))
}

// addMachineControllers adds those of Clusters and Machines, which read objects of providers and connect to target clusters.
func addMachineControllers(mgr ctrl.Manager, o *options, connections *remote.Connections, resolver *version.Resolver) error {
	kinds := func() *external.Kinds {
		return &external.Kinds{Resolver: resolver, Cache: mgr.GetCache(), Clock: clock.RealClock{}}
	}
	clusters := &cluster.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Connections: connections,
		Kinds:       kinds(),
		Clock:       clock.RealClock{},
		Recorder:    events.Within(mgr.GetEventRecorder("cluster")),
		Options:     cluster.Options{RemoteConnectionGracePeriod: o.remoteConnectionGrace, WatchFilter: o.WatchFilter},
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
		Recorder:    events.Within(mgr.GetEventRecorder("machine")),
		Options:     o.machineOptions(),
	}
	return machines.SetupWithManager(mgr, concurrency(o.machineConcurrency))
}

// addSetControllers adds those of MachineSets and MachineDeployments, which share what was written to MachineSets.
func addSetControllers(mgr ctrl.Manager, o *options, resolver *version.Resolver) error {
	written := &persist.Versions{}
	sets := &machineset.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		Resolver:    resolver,
		WatchFilter: o.WatchFilter,
		Written:     written,
		Preflight:   o.preflight,
	}
	if err := sets.SetupWithManager(mgr, concurrency(o.machineSetConcurrency)); err != nil {
		return err
	}
	deployments := &machinedeployment.Reconciler{
		Client:      mgr.GetClient(),
		APIReader:   mgr.GetAPIReader(),
		WatchFilter: o.WatchFilter,
		Sets:        written,
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
		RemoteConditionsGracePeriod: o.remoteConditionsGrace, WatchFilter: o.WatchFilter,
		SyncLabels: o.syncLabels, SyncAnnotations: o.syncAnnotations,
		PropagateTaints: features.TaintPropagation(), KeepOutdatedFromScaleDown: o.keepOutdatedFromScaleDown,
	}
}
