package manager

import (
	"os"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

// New returns a controller manager made by the options, with health checks. adjust may change what
// the options do not cover.
func New(rc *rest.Config, scheme *runtime.Scheme, o *Options, adjust ...func(*ctrl.Options)) (ctrl.Manager, error) {
	if err := o.Validate(); err != nil {
		return nil, err
	}
	_, metrics, err := flags.GetManagerOptions(o.Diagnostics)
	if err != nil {
		return nil, errors.Wrap(err, "reading the diagnostics flags")
	}
	rc = rest.CopyConfig(rc)
	rc.QPS, rc.Burst, rc.UserAgent = o.KubeAPIQPS, o.KubeAPIBurst, o.Name
	options := o.managerOptions(scheme, *metrics)
	for _, f := range adjust {
		f(&options)
	}
	mgr, err := ctrl.NewManager(rc, options)
	if err != nil {
		return nil, errors.Wrap(err, "making the manager")
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, errors.Wrap(err, "adding the health check")
	}
	if err := mgr.AddReadyzCheck("ping", healthz.Ping); err != nil {
		return nil, errors.Wrap(err, "adding the readiness check")
	}
	return mgr, nil
}

func (o *Options) managerOptions(scheme *runtime.Scheme, metrics metricsserver.Options) ctrl.Options {
	return ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metrics,
		HealthProbeBindAddress:  o.HealthAddr,
		PprofBindAddress:        o.ProfilerAddress,
		LeaderElection:          o.LeaderElect,
		LeaderElectionID:        o.Name,
		LeaderElectionNamespace: o.leaseNamespace(),
		LeaseDuration:           &o.LeaseDuration,
		RenewDeadline:           &o.RenewDeadline,
		RetryPeriod:             &o.RetryPeriod,
		// The process ends with the manager, so its lease can be given up at once.
		LeaderElectionReleaseOnCancel: true,
		// Shorter than what the manifests give the Pod: should a controller not end in time, since its queue can be
		// deadlocked by its shutdown (https://github.com/kubernetes-sigs/controller-runtime/issues/3538), the lease is
		// given up all the same. What is broken off in the cloud is found again by its token.
		GracefulShutdownTimeout: new(8 * time.Second),
		Cache:                   o.cacheOptions(),
		Controller:              config.Controller{UsePriorityQueue: new(true)},
	}
}

func (o *Options) leaseNamespace() string {
	if o.LeaderElectionNamespace != "" {
		return o.LeaderElectionNamespace
	}
	if namespace := os.Getenv("POD_NAMESPACE"); namespace != "" {
		return namespace
	}
	return o.Name + "-system"
}

// cacheOptions keep of Machines and Clusters what the reconciler reads, and of no object its managed
// fields.
func (o *Options) cacheOptions() cache.Options {
	options := cache.Options{
		SyncPeriod:       &o.SyncPeriod,
		DefaultTransform: cache.TransformStripManagedFields(),
		ByObject: map[client.Object]cache.ByObject{
			&clusterv1.Machine{}: {Transform: slimMachine},
			&clusterv1.Cluster{}: {Transform: slimCluster},
		},
	}
	if o.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return options
}
