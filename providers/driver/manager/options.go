// Package manager holds what the mains of all providers share: flags, the controller manager with
// its health, metrics and leader election, and a cache that keeps only what the reconciler reads.
package manager

import (
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	"k8s.io/utils/clock"
	"sigs.k8s.io/cluster-api/util/flags"

	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/inventory"
)

// Options are the flags of a provider. Names and defaults are those of Cluster API's managers where
// these have the flag.
type Options struct {
	// Name of the provider, for example millwright-aws: its leader election lease and user agent.
	Name string

	// Diagnostics are the flags of the metrics endpoint and of TLS.
	Diagnostics flags.ManagerOptions
	// Logs are the flags of logging.
	Logs *logs.Options

	HealthAddr      string
	ProfilerAddress string
	WebhookPort     int
	WebhookCertDir  string

	LeaderElect             bool
	LeaseDuration           time.Duration
	RenewDeadline           time.Duration
	RetryPeriod             time.Duration
	LeaderElectionNamespace string

	Namespace    string
	WatchFilter  string
	SyncPeriod   time.Duration
	KubeAPIQPS   float32
	KubeAPIBurst int
	Concurrency  int

	InventoryFast     time.Duration
	InventorySlow     time.Duration
	CloudTimeout      time.Duration
	VisibilityGrace   time.Duration
	LaunchesPerSecond float64
	LaunchBurst       int
}

// NewOptions returns the options of a provider with the defaults of its cloud for pacing launches.
func NewOptions(name string, launchesPerSecond float64, launchBurst int) *Options {
	return &Options{Name: name, Logs: logs.NewOptions(), LaunchesPerSecond: launchesPerSecond, LaunchBurst: launchBurst}
}

// AddFlags adds the flags to fs. --kubeconfig is registered by controller-runtime on the command line's
// own flag set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	logsv1.AddFlags(o.Logs, fs)
	flags.AddManagerOptions(fs, &o.Diagnostics)
	o.addUpstreamFlags(fs)
	o.addOwnFlags(fs)
}

func (o *Options) addUpstreamFlags(fs *pflag.FlagSet) {
	fs.StringVar(&o.HealthAddr, "health-addr", ":9440", "Address of the health endpoints.")
	fs.StringVar(&o.ProfilerAddress, "profiler-address", "", "Address to serve pprof on, for example localhost:6060; empty for none.")
	fs.BoolVar(&o.LeaderElect, "leader-elect", false, "Let one of several replicas be active.")
	fs.DurationVar(&o.LeaseDuration, "leader-elect-lease-duration", 15*time.Second, "Time after which a silent leader is replaced.")
	fs.DurationVar(&o.RenewDeadline, "leader-elect-renew-deadline", 10*time.Second, "Time in which the leader must renew its lease, or end.")
	fs.DurationVar(&o.RetryPeriod, "leader-elect-retry-period", 2*time.Second, "Time between two attempts to get or renew the lease.")
	fs.StringVar(&o.LeaderElectionNamespace, "leader-elect-namespace", "", "Namespace of the lease; empty for the namespace that this process runs in, or else <name>-system.")
	fs.StringVar(&o.Namespace, "namespace", "", "Namespace to watch; empty for all.")
	fs.StringVar(&o.WatchFilter, "watch-filter", "", "Value of the label cluster.x-k8s.io/watch-filter that objects must have to be reconciled; empty for all objects.")
	fs.DurationVar(&o.SyncPeriod, "sync-period", 10*time.Minute, "Time after which all objects are reconciled again without a change.")
	fs.Float32Var(&o.KubeAPIQPS, "kube-api-qps", 100, "Highest average rate of requests to the API server.")
	fs.IntVar(&o.KubeAPIBurst, "kube-api-burst", 200, "Number of requests to the API server that may exceed the average rate at once.")
	fs.IntVar(&o.WebhookPort, "webhook-port", 9443, "Port of the webhook server. This provider has no webhooks and opens no port.")
	fs.StringVar(&o.WebhookCertDir, "webhook-cert-dir", "/tmp/k8s-webhook-server/serving-certs/", "Folder of the webhook server's certificate.")
}

func (o *Options) addOwnFlags(fs *pflag.FlagSet) {
	defaults := inframachine.DefaultOptions()
	fs.IntVar(&o.Concurrency, "machine-concurrency", defaults.Concurrency, "Number of machines to reconcile at a time.")
	fs.DurationVar(&o.InventoryFast, "inventory-fast-interval", 3*time.Second, "Time between two lists of the cloud's instances while a machine waits for a change.")
	fs.DurationVar(&o.InventorySlow, "inventory-slow-interval", 90*time.Second, "Time between two lists of the cloud's instances otherwise.")
	fs.DurationVar(&o.CloudTimeout, "cloud-call-timeout", defaults.CallTimeout, "Time that one call to the cloud may take.")
	fs.DurationVar(&o.VisibilityGrace, "instance-visibility-grace", defaults.VisibilityGrace, "Time after a launch in which the cloud may fail to list the instance before its absence is believed; at least --cloud-call-timeout.")
	fs.Float64Var(&o.LaunchesPerSecond, "launches-per-second", o.LaunchesPerSecond, "Highest average rate of launches in a scope (account and region); 0 for no limit.")
	fs.IntVar(&o.LaunchBurst, "launch-burst", o.LaunchBurst, "Number of launches that may exceed the average rate at once.")
}

// Validate refuses combinations under which an instance could be lost: a call that this process has given up may still
// take effect in the cloud, so absence proves nothing before its time is over.
func (o *Options) Validate() error {
	if o.VisibilityGrace < o.CloudTimeout {
		return errors.Errorf("--instance-visibility-grace is %s, less than --cloud-call-timeout, which is %s: raise the one or lower the other",
			o.VisibilityGrace, o.CloudTimeout)
	}
	return nil
}

// Machine returns the options of the machine reconciler.
func (o *Options) Machine() inframachine.Options {
	return inframachine.Options{
		VisibilityGrace: o.VisibilityGrace,
		CallTimeout:     o.CloudTimeout,
		WatchFilter:     o.WatchFilter,
		Concurrency:     o.Concurrency,
	}
}

// Inventory returns the options of the inventory.
func (o *Options) Inventory(clk clock.WithTicker) inventory.Options {
	return inventory.Options{Clock: clk, Fast: o.InventoryFast, Slow: o.InventorySlow, Timeout: o.CloudTimeout}
}
