// Package manager has what the main packages of all providers share: their flags beside those of every manager, and a
// controller manager with a cache that keeps only what the reconciler reads.
package manager

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/types"

	controllermanager "millwright.dev/contracts/controller/manager"
	"millwright.dev/providers/driver"
	"millwright.dev/providers/driver/inframachine"
	"millwright.dev/providers/driver/inventory"
	"millwright.dev/providers/driver/orphans"
)

// Options are the flags of a provider.
type Options struct {
	// Options are the flags of every manager. Their Name is that of the provider, for example millwright-aws.
	*controllermanager.Options

	Concurrency       int
	InventoryFast     time.Duration
	InventorySlow     time.Duration
	StatusInterval    time.Duration
	CloudTimeout      time.Duration
	UnreachableAfter  time.Duration
	VisibilityGrace   time.Duration
	LaunchesPerSecond float64
	LaunchBurst       int
	OrphanPolicy      string
	OrphanPeriod      time.Duration

	// Identities are the flags about identities; nil for a provider that has none.
	Identities *IdentityOptions
}

// NewOptions returns the options of a provider with the defaults of its cloud.
func NewOptions(name string, traits driver.Traits) *Options {
	traits = traits.WithDefaults()
	launches := traits.Rates[driver.CallCreate]
	return &Options{
		Options:       controllermanager.NewOptions(name, name+"-system"),
		InventoryFast: traits.ListFast, InventorySlow: traits.ListSlow,
		StatusInterval:    traits.StatusInterval,
		LaunchesPerSecond: launches.PerSecond, LaunchBurst: launches.Burst,
	}
}

// Program is the process of a provider, which does what run does.
func (o *Options) Program(summary string, run func(context.Context) error) controllermanager.Program {
	return controllermanager.Program{Summary: summary, Options: o.Options, AddFlags: o.addOwnFlags, Complete: o.Validate, Run: run}
}

// AddFlags adds all flags to fs but --kubeconfig, which controller-runtime registers on the command line's own flag set.
func (o *Options) AddFlags(fs *pflag.FlagSet) {
	o.Options.AddFlags(fs)
	o.addOwnFlags(fs)
}

func (o *Options) addOwnFlags(fs *pflag.FlagSet) {
	defaults := inframachine.DefaultOptions()
	fs.IntVar(
		&o.Concurrency,
		"machine-concurrency",
		defaults.Concurrency,
		"Machines to reconcile at once; a quarter of them may call the cloud in one scope (account and region).",
	)
	fs.DurationVar(
		&o.InventoryFast,
		"inventory-fast-interval",
		o.InventoryFast,
		"Time between two lists of the cloud's instances while a machine waits for a change; a tenth of the wait once that is longer.",
	)
	fs.DurationVar(&o.InventorySlow, "inventory-slow-interval", o.InventorySlow, "Time between two lists of the cloud's instances otherwise.")
	fs.DurationVar(&o.StatusInterval, "instance-status-interval", o.StatusInterval,
		"Time between two reads of what lists of instances leave out, such as the cloud's own health checks, where the provider reports those.")
	fs.DurationVar(&o.CloudTimeout, "cloud-call-timeout", defaults.CallTimeout, "Time that one call to the cloud may take.")
	fs.DurationVar(
		&o.UnreachableAfter,
		"cloud-unreachable-after",
		inventory.DefaultUnreachableAfter,
		"Time for which lists of the cloud's instances fail before machines report it in the condition CloudReachable; at least three times --inventory-slow-interval.",
	)
	fs.DurationVar(
		&o.VisibilityGrace,
		"instance-visibility-grace",
		defaults.VisibilityGrace,
		"Time after a launch in which the cloud may fail to list the instance before its absence counts; at least --cloud-call-timeout.",
	)
	fs.Float64Var(
		&o.LaunchesPerSecond,
		"launches-per-second",
		o.LaunchesPerSecond,
		"Highest average rate of launches in a scope (account and region); 0 for no limit.",
	)
	fs.StringVar(&o.OrphanPolicy, "orphan-policy", string(orphans.PolicyDelete),
		"What to do with instances, and with what they leave behind, that are certainly ours and that no object claims: delete or report.")
	fs.DurationVar(&o.OrphanPeriod, "machine-safety-orphan-vms-period", orphans.DefaultPeriod,
		"Time between two scans for instances that no object claims; 0 for none.")
	if o.Identities != nil {
		o.Identities.addFlags(fs)
	}
	fs.Int("webhook-port", 0, "")
	fs.String("webhook-cert-dir", "", "")
	controllermanager.Ignore(fs, "webhook-port", "webhook-cert-dir")
	fs.IntVar(&o.LaunchBurst, "launch-burst", o.LaunchBurst, "Number of launches that may exceed the average rate at once.")
}

// Validate refuses combinations under which an instance could be lost: a call that this process has given up may still
// take effect in the cloud, so absence proves nothing before its time is over.
func (o *Options) Validate() error {
	if err := o.Options.Validate(); err != nil {
		return err
	}
	if o.VisibilityGrace < o.CloudTimeout {
		return errors.Errorf("--instance-visibility-grace is %s, less than --cloud-call-timeout, which is %s: raise the one or lower the other",
			o.VisibilityGrace, o.CloudTimeout)
	}
	if p := orphans.Policy(o.OrphanPolicy); p != "" && p != orphans.PolicyDelete && p != orphans.PolicyReport {
		return errors.Errorf("--orphan-policy is %q: set it to %s or %s", o.OrphanPolicy, orphans.PolicyDelete, orphans.PolicyReport)
	}
	if o.OrphanPeriod < 0 || o.OrphanPeriod > 0 && o.OrphanPeriod < orphans.MinPeriod() {
		return errors.Errorf("--machine-safety-orphan-vms-period is %s: set it to 0 for no scans, or to a minute at least", o.OrphanPeriod)
	}
	if o.Identities != nil {
		return o.Identities.validate()
	}
	return nil
}

// Machine returns the options of the machine reconciler.
func (o *Options) Machine() inframachine.Options {
	return inframachine.Options{
		VisibilityGrace:  o.VisibilityGrace,
		CallTimeout:      o.CloudTimeout,
		WatchFilter:      o.WatchFilter,
		Concurrency:      o.Concurrency,
		ListFast:         o.InventoryFast,
		ListSlow:         o.InventorySlow,
		StatusInterval:   o.StatusInterval,
		UnreachableAfter: o.UnreachableAfter,
		Orphans: orphans.Options{
			Policy: orphans.Policy(o.OrphanPolicy), Period: o.OrphanPeriod, Namespace: o.Namespace,
			Record: types.NamespacedName{Namespace: o.OwnNamespace(), Name: o.Name + "-orphans"},
		},
		Launches: &driver.Rate{PerSecond: o.LaunchesPerSecond, Burst: o.LaunchBurst},
	}
}
