// Package manager is what the processes of core and providers share: the command line with its exit codes, the version,
// logging, and a controller manager with health checks, diagnostics and leader election.
package manager

import (
	"context"
	"os"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/leaderelection"
	"k8s.io/client-go/util/workqueue"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/cluster-api/util/apiwarnings"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/healthz"

	"millwright.dev/contracts/controller/diagnostics"
)

// ShutdownTimeout is how long the reconciles under way may take once the process is to end. It is shorter than what the
// manifests give the Pod: should they not end, since a queue of controller-runtime can be deadlocked by its shutdown
// (https://github.com/kubernetes-sigs/controller-runtime/issues/3538), the lease is given up all the same.
const ShutdownTimeout = 8 * time.Second

// cacheSyncTimeout bounds the first reading of all objects; it is long, since large installations are slow to read.
const cacheSyncTimeout = 5 * time.Minute

// defaultVerbosity is that of Cluster API's managers.
const defaultVerbosity = 2

// Options are the flags that every manager has. Names and defaults are those of Cluster API's managers where these have
// the flag, and of Kubernetes' components otherwise.
type Options struct {
	// Name of the manager, for example millwright-core: its lease and its user agent.
	Name string
	// InstallNamespace is where the manager is installed, used where it does not run in a cluster.
	InstallNamespace string

	// Logs are the flags of logging.
	Logs *logs.Options
	// Diagnostics are the flags of metrics, profiles and TLS.
	Diagnostics diagnostics.Options

	HealthAddr          string
	ProfilerAddress     string
	ContentionProfiling bool

	LeaderElect    bool
	LeaseDuration  time.Duration
	RenewDeadline  time.Duration
	RetryPeriod    time.Duration
	LeaseNamespace string

	Namespace    string
	WatchFilter  string
	SyncPeriod   time.Duration
	KubeAPIQPS   float32
	KubeAPIBurst int
}

// NewOptions returns the options of a manager of that name.
func NewOptions(name, installNamespace string) *Options {
	o := &Options{Name: name, InstallNamespace: installNamespace, Logs: logs.NewOptions()}
	o.Logs.Verbosity = defaultVerbosity
	return o
}

// AddFlags adds the flags.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	logsv1.AddFlags(o.Logs, flags)
	o.Diagnostics.AddFlags(flags)
	flags.StringVar(&o.HealthAddr, "health-addr", ":9440", "The address of /healthz and /readyz; 0 for none.")
	flags.StringVar(
		&o.ProfilerAddress,
		"profiler-address",
		"",
		"The address of the pprof profiler, for example localhost:6060; none when empty.",
	)
	flags.BoolVar(&o.ContentionProfiling, "contention-profiling", false, "Profile blocking too.")
	flags.BoolVar(&o.LeaderElect, "leader-elect", false, "Run only while holding a lease, so that one of several replicas is active.")
	flags.DurationVar(
		&o.LeaseDuration,
		"leader-elect-lease-duration",
		15*time.Second,
		"How long others wait for the holder of the lease to renew it; at least the renew deadline and the retry period together.",
	)
	flags.DurationVar(
		&o.RenewDeadline,
		"leader-elect-renew-deadline",
		10*time.Second,
		"How long the holder tries to renew the lease before it gives up.",
	)
	flags.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "How long to wait between attempts at the lease.")
	flags.StringVar(&o.LeaseNamespace, "leader-elect-resource-namespace", "", "The namespace of the lease; that of the process by default.")
	flags.StringVar(&o.Namespace, "namespace", "", "The one namespace to work in; all when empty.")
	flags.StringVar(
		&o.WatchFilter,
		"watch-filter",
		"",
		"Work only on objects with this value of the label cluster.x-k8s.io/watch-filter; on all when empty.",
	)
	flags.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Minute, "How often all objects are reconciled without an event.")
	flags.Float32Var(&o.KubeAPIQPS, "kube-api-qps", 100, "Requests per second to the management API server.")
	flags.IntVar(&o.KubeAPIBurst, "kube-api-burst", 200, "Requests to the management API server that may exceed the rate for a moment.")
}

// Validate reports what is wrong with the flags.
func (o *Options) Validate() error {
	if _, err := o.Diagnostics.TLS(); err != nil {
		return err
	}
	if o.LeaderElect {
		if err := o.validateLease(); err != nil {
			return err
		}
	}
	if o.KubeAPIBurst < 1 || o.KubeAPIQPS <= 0 {
		return errors.New("--kube-api-qps and --kube-api-burst must be positive")
	}
	return nil
}

// validateLease reports durations by which a process could work on after its lease has ended: client-go waits for the retry period
// after a renewal, and then tries to renew for as long as the renew deadline says. It jitters the retry period.
// https://pkg.go.dev/k8s.io/client-go/tools/leaderelection#LeaderElectionConfig
func (o *Options) validateLease() error {
	if o.RetryPeriod < 1 || float64(o.RenewDeadline) <= leaderelection.JitterFactor*float64(o.RetryPeriod) {
		return errors.Errorf("--leader-elect-retry-period (%s) must be positive, and --leader-elect-renew-deadline (%s) more than %v times as long",
			o.RetryPeriod, o.RenewDeadline, leaderelection.JitterFactor)
	}
	if o.LeaseDuration < o.RenewDeadline+o.RetryPeriod {
		return errors.Errorf("--leader-elect-lease-duration (%s) must be at least --leader-elect-renew-deadline and --leader-elect-retry-period together (%s)",
			o.LeaseDuration, o.RenewDeadline+o.RetryPeriod)
	}
	return nil
}

// OwnNamespace is the namespace of the lease, and of what else the manager has of its own.
func (o *Options) OwnNamespace() string {
	for _, namespace := range []string{o.LeaseNamespace, os.Getenv("POD_NAMESPACE")} {
		if namespace != "" {
			return namespace
		}
	}
	return o.InstallNamespace
}

// RESTConfig finds the API server and says how to talk to it.
func (o *Options) RESTConfig() (*rest.Config, error) {
	rc, err := ctrl.GetConfig()
	if err != nil {
		return nil, errors.Wrap(err, "finding the API server: set --kubeconfig, or run in a cluster")
	}
	return o.Limit(rc), nil
}

// Limit returns a copy of the config with the manager's user agent and rates.
func (o *Options) Limit(rc *rest.Config) *rest.Config {
	rc = rest.CopyConfig(rc)
	rc.QPS, rc.Burst, rc.UserAgent = o.KubeAPIQPS, o.KubeAPIBurst, o.Name
	rc.WarningHandlerWithContext = warnings{apiwarnings.DefaultHandler(klog.Background().WithName("API server warning"))}
	return rc
}

// warnings adapts a warning handler.
type warnings struct{ rest.WarningHandler }

// HandleWarningHeaderWithContext implements rest.WarningHandlerWithContext.
func (w warnings) HandleWarningHeaderWithContext(_ context.Context, code int, agent, text string) {
	w.HandleWarningHeader(code, agent, text)
}

// Settings are those of a controller manager as the flags say.
func (o *Options) Settings(scheme *runtime.Scheme) (ctrl.Options, error) {
	metrics, err := o.Diagnostics.Server()
	if err != nil {
		return ctrl.Options{}, err
	}
	return ctrl.Options{
		Scheme:                  scheme,
		Metrics:                 metrics,
		HealthProbeBindAddress:  o.HealthAddr,
		PprofBindAddress:        o.ProfilerAddress,
		LeaderElection:          o.LeaderElect,
		LeaderElectionID:        o.Name,
		LeaderElectionNamespace: o.OwnNamespace(),
		LeaseDuration:           &o.LeaseDuration,
		RenewDeadline:           &o.RenewDeadline,
		RetryPeriod:             &o.RetryPeriod,
		// The process exits with the manager, so its lease can be given up at once.
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(ShutdownTimeout),
		Controller:                    config.Controller{UsePriorityQueue: new(true), CacheSyncTimeout: cacheSyncTimeout},
		Cache:                         o.cacheOptions(),
	}, nil
}

func (o *Options) cacheOptions() cache.Options {
	options := cache.Options{SyncPeriod: &o.SyncPeriod, DefaultTransform: cache.TransformStripManagedFields()}
	if o.Namespace != "" {
		options.DefaultNamespaces = map[string]cache.Config{o.Namespace: {}}
	}
	return options
}

// New returns a controller manager with health checks.
func New(rc *rest.Config, settings ctrl.Options) (ctrl.Manager, error) {
	mgr, err := ctrl.NewManager(rc, settings)
	if err != nil {
		return nil, errors.Wrap(err, "creating the manager")
	}
	if err := mgr.AddHealthzCheck("ping", healthz.Ping); err != nil {
		return nil, errors.Wrap(err, "adding the health check")
	}
	return mgr, errors.Wrap(mgr.AddReadyzCheck("ping", healthz.Ping), "adding the readiness check")
}

// Bounds of the delay after a reconcile that failed, which doubles. The upper one is less than controller-runtime's quarter of an
// hour: after a long outage of an API server everything should continue within a minute.
const minRetry, maxRetry = 5 * time.Millisecond, time.Minute

// ControllerOptions are the options of a controller with so many workers, whose queue holds requests of type R.
func ControllerOptions[R comparable](workers int) controller.TypedOptions[R] {
	return controller.TypedOptions[R]{
		MaxConcurrentReconciles: workers,
		RateLimiter:             workqueue.NewTypedItemExponentialFailureRateLimiter[R](minRetry, maxRetry),
	}
}
