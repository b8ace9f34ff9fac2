package overshoot

import (
	"time"

	"github.com/pkg/errors"
	"github.com/spf13/pflag"
)

// Options are what flags set, with the names and defaults of Gardener's machine-controller-manager.
type Options struct {
	// Up is how many Machines more than replicas and surge freeze; 0 switches the freeze off.
	Up int
	// Down is how many fewer than those that freeze end it; 0 is as 1.
	Down int
	// Period is how long a surplus may last that a scale-down is to take away, how long nothing is frozen again after a user has
	// unfrozen it, and how long after a Machine has come the API server is asked for all, whatever the cache shows.
	Period time.Duration
}

// DefaultOptions returns the defaults.
func DefaultOptions() Options { return Options{Up: 2, Down: 1, Period: time.Minute} }

// AddFlags adds the flags, with the values that the options have as their defaults.
func (o *Options) AddFlags(flags *pflag.FlagSet) {
	flags.IntVar(&o.Up, "safety-up", o.Up,
		"How many Machines beyond replicas and surge of a MachineDeployment stop the creation of more; 0 for never.")
	flags.IntVar(&o.Down, "safety-down", o.Down,
		"How far the number of Machines must fall below the one that stopped creation until creation resumes.")
	flags.DurationVar(&o.Period, "machine-safety-overshooting-period", o.Period,
		"How long the surplus of a scale-down may last until it counts, and how long after the creation of a Machine all are counted by the API server.")
}

// Validate reports what is wrong with the flags.
func (o *Options) Validate() error {
	if o.Up < 0 || o.Down < 0 || o.Down > o.Up || o.Period <= 0 {
		return errors.New("--safety-up must not be negative, --safety-down must be from 0 to --safety-up, " +
			"and --machine-safety-overshooting-period must be positive")
	}
	return nil
}

// enabled reports whether anything is frozen because of numbers.
func (o *Options) enabled() bool { return o.Up > 0 }
