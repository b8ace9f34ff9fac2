package freeze

import (
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
)

// Defaults of Options. Timeout is that of Gardener's machine-controller-manager.
const (
	DefaultTimeout = 30 * time.Second
	DefaultGrace   = 2 * time.Minute
)

// Options are what flags set.
type Options struct {
	// Timeout is how long the API server of a target cluster may leave requests unanswered before replacements are frozen.
	Timeout time.Duration
	// Grace is how long Nodes get to report after the API server answers again.
	Grace time.Duration
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options { return Options{Timeout: DefaultTimeout, Grace: DefaultGrace} }

// AddFlags adds the flags, with the values that the options have as their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.DurationVar(&o.Timeout, "machine-safety-apiserver-statuscheck-timeout", o.Timeout,
		"How long the API server of a target cluster may be without an answer before no Machine of its Cluster is replaced.")
	flags.DurationVar(&o.Grace, "machine-safety-recovery-grace", o.Grace,
		"How long to wait for Nodes to report before a Machine is replaced, after the API server of a target cluster answers again.")
}

// Validate reports what is wrong with the flags.
func (o *Options) Validate() error {
	if o.Timeout <= 0 || o.Grace < 0 {
		return errors.New(
			"--machine-safety-apiserver-statuscheck-timeout must be positive, and --machine-safety-recovery-grace must not be negative")
	}
	return nil
}
