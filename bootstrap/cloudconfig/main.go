// Command cloudconfig is the manager of the CloudConfig bootstrap provider: it makes the user data of
// machines, their Secrets and tokens in target clusters, and approves their certificate requests.
package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	cliflag "k8s.io/component-base/cli/flag"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"k8s.io/utils/clock"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/cluster-api/controllers/clustercache"
	capiflags "sigs.k8s.io/cluster-api/util/flags"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	ctrlcontroller "sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	bootstrapv1 "millwright.dev/bootstrap/cloudconfig/api/v1alpha1"
	"millwright.dev/bootstrap/cloudconfig/approval"
	"millwright.dev/bootstrap/cloudconfig/controller"
)

const managerName = "millwright-cloudconfig"

// The diagnostics endpoint asks the API server who its caller is and what the caller may do.
// +kubebuilder:rbac:groups=authentication.k8s.io,resources=tokenreviews,verbs=create
// +kubebuilder:rbac:groups=authorization.k8s.io,resources=subjectaccessreviews,verbs=create

func main() {
	o := &options{}
	fs := pflag.CommandLine
	o.add(fs)
	fs.SetNormalizeFunc(cliflag.WordSepNormalizeFunc)
	pflag.Parse()
	if err := logsv1.ValidateAndApply(o.logs, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	ctrl.SetLogger(klog.Background())
	if err := run(ctrl.SetupSignalHandler(), o); err != nil {
		klog.ErrorS(err, "The manager failed")
		os.Exit(1)
	}
}

func run(ctx context.Context, o *options) error {
	mgr, err := newManager(o)
	if err != nil {
		return err
	}
	connections, err := clustercache.SetupWithManager(ctx, mgr, clustercache.Options{
		SecretClient:     mgr.GetAPIReader(),
		WatchFilterValue: o.watchFilter,
		Cache:            clustercache.CacheOptions{ByObject: approval.CacheOptions(), DefaultTransform: cache.TransformStripManagedFields()},
		Client:           clustercache.ClientOptions{QPS: o.targetQPS, Burst: o.targetBurst, UserAgent: managerName},
	}, ctrlcontroller.Options{MaxConcurrentReconciles: o.clusterCacheConcurrency})
	if err != nil {
		return errors.Wrap(err, "setting up connections to target clusters")
	}
	err = (&controller.Reconciler{
		Client: mgr.GetClient(), Secrets: mgr.GetAPIReader(), Targets: connections,
		Recorder: mgr.GetEventRecorder(managerName), Clock: clock.RealClock{},
		CleanupTimeout: o.cleanupTimeout, WatchFilterValue: o.watchFilter,
	}).SetupWithManager(ctx, mgr, connections, ctrlcontroller.Options{MaxConcurrentReconciles: o.concurrency})
	if err != nil {
		return err
	}
	err = (&approval.Reconciler{
		Client: mgr.GetClient(), Targets: connections, Recorder: mgr.GetEventRecorder(managerName),
	}).SetupWithManager(ctx, mgr, connections, ctrlcontroller.TypedOptions[approval.Request]{MaxConcurrentReconciles: o.concurrency})
	if err != nil {
		return err
	}
	return errors.Wrap(mgr.Start(ctx), "running the manager")
}

func newManager(o *options) (ctrl.Manager, error) {
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{clientgoscheme.AddToScheme, clusterv1.AddToScheme, bootstrapv1.AddToScheme} {
		if err := add(scheme); err != nil {
			return nil, errors.Wrap(err, "building the scheme")
		}
	}
	_, metrics, err := capiflags.GetManagerOptions(o.manager)
	if err != nil {
		return nil, errors.Wrap(err, "reading the flags")
	}
	config, err := ctrl.GetConfig()
	if err != nil {
		return nil, errors.Wrap(err, "finding the management cluster")
	}
	config.QPS, config.Burst, config.UserAgent = o.qps, o.burst, managerName
	caching := cache.Options{SyncPeriod: &o.syncPeriod, DefaultTransform: cache.TransformStripManagedFields()}
	if o.namespace != "" {
		caching.DefaultNamespaces = map[string]cache.Config{o.namespace: {}}
	}
	mgr, err := ctrl.NewManager(config, ctrl.Options{
		Scheme: scheme, Metrics: *metrics, Cache: caching,
		HealthProbeBindAddress: o.healthAddress, PprofBindAddress: o.profilerAddress,
		LeaderElection: o.leaderElect, LeaderElectionID: managerName, LeaderElectionNamespace: leaseNamespace(),
		LeaderElectionReleaseOnCancel: true,
		// Shorter than what the manifest gives the Pod, so that the lease is given up even when a controller does not end:
		// https://github.com/kubernetes-sigs/controller-runtime/issues/3538.
		GracefulShutdownTimeout: new(8 * time.Second),
		LeaseDuration:           &o.leaseDuration, RenewDeadline: &o.renewDeadline, RetryPeriod: &o.retryPeriod,
	})
	if err != nil {
		return nil, errors.Wrap(err, "creating the manager")
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, errors.Wrap(err, "adding the health check")
	}
	return mgr, errors.Wrap(mgr.AddReadyzCheck("ping", healthz.Ping), "adding the readiness check")
}
