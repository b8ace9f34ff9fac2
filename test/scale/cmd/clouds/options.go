package main

import (
	"flag"
	"fmt"
	"slices"
	"strings"
	"time"

	"millwright.dev/test/scale/clouds"
)

// The lengths of the window in steady state.
const (
	// idleOurs has two of our slow lists.
	idleOurs = 3 * time.Minute
	// idleCompared has a resync of Cluster API's provider: it reconciles every machine every ten minutes, give or take one, but for the first
	// time, as its informers are older than the controllers that listen to them.
	idleCompared = 22 * time.Minute
)

// options are the command line.
type options struct {
	n                                  int
	providers                          []string
	idle                               time.Duration
	pending, shuttingDown, consistency time.Duration
	check                              bool
	capaArgs                           []string
	sideBySide                         bool
	out                                string
	phaseTimeout                       time.Duration
}

func parse(args []string) (options, error) {
	var o options
	var providers, capaArgs string
	flags := flag.NewFlagSet("clouds", flag.ContinueOnError)
	flags.IntVar(&o.n, "n", 300, "number of Machines")
	flags.StringVar(&providers, "providers", clouds.NameOurs, "the providers to run, in this order, of "+strings.Join(clouds.Names, ","))
	flags.DurationVar(&o.idle, "idle", 0,
		fmt.Sprintf("length of the window in steady state (default %s for ours alone, otherwise %s)", idleOurs, idleCompared))
	flags.DurationVar(&o.pending, "pending", 15*time.Second, "time that an instance takes to start")
	flags.DurationVar(&o.shuttingDown, "shutting-down", 45*time.Second, "time that an instance takes to end")
	flags.DurationVar(&o.consistency, "consistency", 0, "time for which a new instance cannot be found")
	flags.StringVar(&capaArgs, "capa-args", "",
		"further flags for Cluster API's provider, separated by spaces, such as --sync-period=1m to see more of its resyncs in less time")
	flags.BoolVar(&o.sideBySide, "side-by-side", false,
		"run all providers at the same time: calls stay what they are, times and CPU do not")
	flags.BoolVar(&o.check, "check", false, "fail when ours misses a goal")
	flags.StringVar(&o.out, "out", "out/bench", "directory for results, logs and the binary of ours, relative to the repository")
	flags.DurationVar(&o.phaseTimeout, "phase-timeout", 30*time.Minute, "how long launch and deletion may take")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.capaArgs = strings.Fields(capaArgs)
	o.providers = strings.Split(providers, ",")
	for i, name := range o.providers {
		if !slices.Contains(clouds.Names, name) || slices.Contains(o.providers[:i], name) {
			return o, fmt.Errorf("no %q, or twice: there are %s", name, strings.Join(clouds.Names, ", "))
		}
	}
	if o.idle == 0 {
		o.idle = idleOurs
		if !slices.Equal(o.providers, []string{clouds.NameOurs}) {
			o.idle = idleCompared
		}
	}
	if o.n < 1 {
		return o, fmt.Errorf("there must be at least one Machine")
	}
	return o, nil
}
