package freeze

import (
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
)

// Defaults of Options. Period and Timeout are those of Gardener's machine-controller-manager.
const (
	DefaultPeriod       = time.Minute
	DefaultTimeout      = 30 * time.Second
	DefaultGrace        = 2 * time.Minute
	DefaultRestoreGrace = time.Hour
)

// Options are what flags set.
type Options struct {
	// Period is the time between two checks of the management cluster's API server; zero turns that check off. Target clusters are
	// probed by their connections in any case.
	Period time.Duration
	// Timeout is how long an API server may leave requests unanswered before replacements are frozen.
	Timeout time.Duration
	// Grace is how long Nodes get to report after an API server answers again, the clock has jumped, or no core was at work.
	Grace time.Duration
	// RestoreGrace is how long nothing is replaced once a restore of the management cluster is suspected; zero turns that off.
	RestoreGrace time.Duration
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options {
	return Options{Period: DefaultPeriod, Timeout: DefaultTimeout, Grace: DefaultGrace, RestoreGrace: DefaultRestoreGrace}
}

// AddFlags adds the flags, with the values that the options have as their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.Period, "machine-safety-apiserver-statuscheck-period", o.Period,
		"How often to check that the API server of the management cluster answers; 0 is never.")
	flags.DurationVar(&o.Timeout, "machine-safety-apiserver-statuscheck-timeout", o.Timeout,
		"How long the API server of the management or a target cluster may be without an answer before no Machine is replaced.")
	flags.DurationVar(&o.Grace, "machine-safety-recovery-grace", o.Grace,
		"How long to wait for Nodes to report before a Machine is replaced, after an API server answers again, after a jump of the clock, "+
			"and after a time without a core.")
	flags.DurationVar(&o.RestoreGrace, "restore-grace", o.RestoreGrace,
		"How long no Machine is replaced once the management cluster seems to have been restored from a backup; 0 turns that off.")
}

// Validate reports what is wrong with the flags.
func (o *Options) Validate() error {
	if o.Period < 0 || o.Timeout <= 0 || o.Grace < 0 || o.RestoreGrace < 0 {
		return errors.New("--machine-safety-apiserver-statuscheck-timeout must be positive, and --machine-safety-apiserver-statuscheck-period, " +
			"--machine-safety-recovery-grace and --restore-grace must not be negative")
	}
	return nil
}
