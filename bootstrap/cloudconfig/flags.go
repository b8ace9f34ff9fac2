package main

import (
	"flag"
	"os"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/component-base/logs"
	logsv1 "k8s.io/component-base/logs/api/v1"
	capiflags "sigs.k8s.io/cluster-api/util/flags"
)

// installNamespace is where config/bootstrap/cloudconfig installs the manager.
const installNamespace = "millwright-cloudconfig-system"

// options are the flags. They have the names that Cluster API's managers use where those have them.
type options struct {
	manager capiflags.ManagerOptions
	logs    *logs.Options

	healthAddress, profilerAddress       string
	leaderElect                          bool
	leaseDuration, renewDeadline         time.Duration
	retryPeriod, syncPeriod              time.Duration
	namespace, watchFilter               string
	qps, targetQPS                       float32
	burst, targetBurst                   int
	concurrency, clusterCacheConcurrency int
	cleanupTimeout                       time.Duration
}

func (o *options) add(fs *pflag.FlagSet) {
	o.logs = logs.NewOptions()
	logsv1.AddFlags(o.logs, fs)
	capiflags.AddManagerOptions(fs, &o.manager)
	fs.StringVar(&o.healthAddress, "health-addr", ":9440", "Address of the health endpoints /healthz and /readyz.")
	fs.StringVar(&o.profilerAddress, "profiler-address", "", "Address of the profiler; none when empty.")
	fs.BoolVar(&o.leaderElect, "leader-elect", false, "Work only while holding the lease, so that one of several replicas is active.")
	fs.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "Time after which a lease that is not renewed is taken by another replica.")
	fs.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "Time after which a holder that cannot renew its lease gives up.")
	fs.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "Time between two tries to take or renew the lease.")
	fs.DurationVar(&o.syncPeriod, "sync-period", 10*time.Hour, "Time after which every object is reconciled again without an event.")
	fs.StringVar(&o.namespace, "namespace", "", "Namespace of the objects to reconcile; all namespaces when empty.")
	fs.StringVar(&o.watchFilter, "watch-filter", "", "Value of label cluster.x-k8s.io/watch-filter of the objects to reconcile; all objects when empty.")
	fs.Float32Var(&o.qps, "kube-api-qps", 100, "Requests per second to the management cluster.")
	fs.IntVar(&o.burst, "kube-api-burst", 200, "Requests to the management cluster in one burst.")
	fs.Float32Var(&o.targetQPS, "clustercache-client-qps", 100, "Requests per second to each target cluster.")
	fs.IntVar(&o.targetBurst, "clustercache-client-burst", 200, "Requests to each target cluster in one burst.")
	fs.IntVar(&o.concurrency, "cloudconfig-concurrency", 20, "CloudConfigs that are reconciled at the same time.")
	fs.IntVar(&o.clusterCacheConcurrency, "clustercache-concurrency", 100, "Target clusters that are connected at the same time.")
	fs.DurationVar(&o.cleanupTimeout, "target-cleanup-timeout", 5*time.Minute, "Time that a deleted CloudConfig waits for a target cluster that cannot be reached.")
	ignored(fs)
	fs.AddGoFlagSet(flag.CommandLine)
}

// ignored takes flags that every manager has and that mean nothing here: it serves no webhooks.
func ignored(fs *pflag.FlagSet) {
	fs.Int("webhook-port", 9443, "Ignored: this manager serves no webhooks.")
	fs.String("webhook-cert-dir", "", "Ignored: this manager serves no webhooks.")
}

// leaseNamespace is where the lease is: the manager's own namespace.
func leaseNamespace() string {
	if own := os.Getenv("POD_NAMESPACE"); own != "" {
		return own
	}
	return installNamespace
}
