package main

import (
	"context"

	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
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
	resolver := &version.Resolver{Reader: mgr.GetClient()}
	kinds := func() *external.Kinds {
		return &external.Kinds{Resolver: resolver, Cache: mgr.GetCache(), Clock: clock.RealClock{}}
	}
	sets := &persist.Versions{}
	steps := []func() error{
		func() error {
			r := &shared.Reconciler{Client: mgr.GetClient(), Connections: connections.Connections, WatchFilter: o.WatchFilter, WatchSecrets: true}
			return r.SetupWithManager(mgr, manager.ControllerOptions[reconcile.Request](o.targetConcurrency))
		},
		func() error {
			r := &cluster.Reconciler{
				Client:      mgr.GetClient(),
				APIReader:   mgr.GetAPIReader(),
				Connections: connections,
				Kinds:       kinds(),
				Clock:       clock.RealClock{},
				Recorder:    events.Within(mgr.GetEventRecorder("cluster")),
				Options:     cluster.Options{RemoteConnectionGracePeriod: o.remoteConnectionGrace, WatchFilter: o.WatchFilter},
			}
			return r.SetupWithManager(mgr, manager.ControllerOptions[reconcile.Request](o.clusterConcurrency))
		},
		func() error {
			r := &machine.Reconciler{
				Client:      mgr.GetClient(),
				APIReader:   mgr.GetAPIReader(),
				Connections: connections,
				Kinds:       kinds(),
				Clock:       clock.RealClock{},
				Recorder:    events.Within(mgr.GetEventRecorder("machine")),
				Options:     o.machineOptions(),
			}
			return r.SetupWithManager(mgr, manager.ControllerOptions[reconcile.Request](o.machineConcurrency))
		},
		func() error {
			r := &machineset.Reconciler{
				Client:      mgr.GetClient(),
				APIReader:   mgr.GetAPIReader(),
				Resolver:    resolver,
				WatchFilter: o.WatchFilter,
				Written:     sets,
				Preflight:   o.preflight,
			}
			return r.SetupWithManager(mgr, manager.ControllerOptions[reconcile.Request](o.machineSetConcurrency))
		},
		func() error {
			r := &machinedeployment.Reconciler{Client: mgr.GetClient(), APIReader: mgr.GetAPIReader(), WatchFilter: o.WatchFilter, Sets: sets}
			return r.SetupWithManager(mgr, manager.ControllerOptions[reconcile.Request](o.machineDeploymentConcurrency))
		},
	}
	steps = append(steps, func() error {
		n := &healthcheck.Notice{
			Client:      mgr.GetClient(),
			Recorder:    events.Within(mgr.GetEventRecorder("machinehealthcheck")),
			WatchFilter: o.WatchFilter,
		}
		return n.SetupWithManager(mgr, manager.ControllerOptions[reconcile.Request](1))
	})
	for _, add := range steps {
		if err := add(); err != nil {
			return err
		}
	}
	return nil
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
