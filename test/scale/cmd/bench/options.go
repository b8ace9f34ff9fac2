package main

import (
	"flag"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"millwright.dev/test/scale/cores"
	"millwright.dev/test/scale/lifecycle"
)

// secondN is the N of the second setting unless said otherwise: upstream's rollout grows with the
// square of N there, and takes minutes at this size.
const secondN = 100

// options are the command line.
type options struct {
	n, secondN   int
	cores        []string
	settings     []lifecycle.Setting
	phases       []string
	growth       []int
	check        string
	out          string
	byResource   bool
	bodies       bool
	healthCheck  bool
	coreArgs     []string
	binary       string
	phaseTimeout time.Duration
}

func parse(args []string) (options, error) {
	var o options
	var coreList, settingList, phaseList, growthList, coreArgs string
	flags := flag.NewFlagSet("bench", flag.ContinueOnError)
	flags.IntVar(&o.n, "n", 300, "number of Machines")
	flags.IntVar(&o.secondN, "n-second", 0, fmt.Sprintf("number of Machines in the second setting (default n, at most %d)", secondN))
	flags.StringVar(&coreList, "cores", "upstream,ours", "the cores to run, in this order")
	flags.StringVar(
		&settingList,
		"settings",
		"first,second",
		"the kinds of Cluster to run in: first has no references, second a stub control plane",
	)
	flags.StringVar(&phaseList, "phases", "", "the phases to run, of "+strings.Join(lifecycle.AllPhases(), ",")+
		"; scale-up always is (default all, but no rollout in the first setting beside upstream, nor for growth)")
	flags.StringVar(
		&growthList,
		"growth",
		"",
		"run ours alone in the first setting at each of these N, and print how its cost per Machine grows",
	)
	flags.StringVar(&o.check, "check", "", "fail when ours exceeds the budget in this file")
	flags.StringVar(&o.out, "out", "out/bench", "directory for results, logs and the binary of ours, relative to the repository")
	flags.BoolVar(
		&o.byResource,
		"by-resource",
		false,
		"print what the requests of each phase were for; -check does it when a budget is exceeded",
	)
	flags.BoolVar(&o.bodies, "request-bodies", false, "keep what the core sends in audit.log beside its log, to see what a write was for")
	flags.BoolVar(&o.healthCheck, "health-check", false, "have a MachineHealthCheck judge all Machines")
	flags.StringVar(&coreArgs, "core-args", "", "further flags for both cores, separated by spaces, such as --profiler-address=127.0.0.1:6060")
	flags.StringVar(&o.binary, "core-binary", "", "run this binary as ours instead of building one")
	flags.DurationVar(&o.phaseTimeout, "phase-timeout", 20*time.Minute, "how long a phase may take")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	if flags.NArg() > 0 {
		return o, fmt.Errorf("unexpected argument %q", flags.Arg(0))
	}
	o.coreArgs = strings.Fields(coreArgs)
	var err error
	if o.settings, err = lifecycle.ParseSettings(settingList); err != nil {
		return o, err
	}
	if o.cores, err = choose(coreList, []string{cores.Ours, cores.Upstream}); err != nil {
		return o, err
	}
	if phaseList != "" {
		if o.phases, err = choose(phaseList, lifecycle.AllPhases()); err != nil {
			return o, err
		}
	}
	if o.growth, err = numbers(growthList); err != nil {
		return o, err
	}
	if o.secondN == 0 {
		o.secondN = min(o.n, secondN)
	}
	if o.n < 1 || o.secondN < 1 {
		return o, fmt.Errorf("there must be at least one Machine")
	}
	return o, nil
}

// choose reads a list whose entries must be known.
func choose(list string, known []string) ([]string, error) {
	var chosen []string
	for entry := range strings.SplitSeq(list, ",") {
		entry = strings.TrimSpace(entry)
		if !slices.Contains(known, entry) {
			return nil, fmt.Errorf("no %q: there are %s", entry, strings.Join(known, ", "))
		}
		chosen = append(chosen, entry)
	}
	return chosen, nil
}

func numbers(list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var all []int
	for entry := range strings.SplitSeq(list, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(entry))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of Machines", entry)
		}
		all = append(all, n)
	}
	return all, nil
}

// planned is one planned run.
type planned struct {
	core    string
	setting lifecycle.Setting
	n       int
}

// runs are those of the command line, in order: the cores side by side within each setting.
func (o *options) runs() []planned {
	var runs []planned
	for _, n := range o.growth {
		runs = append(runs, planned{cores.Ours, lifecycle.First, n})
	}
	if len(runs) > 0 {
		return runs
	}
	for _, setting := range o.settings {
		n := o.n
		if setting == lifecycle.Second {
			n = o.secondN
		}
		for _, core := range o.cores {
			runs = append(runs, planned{core, setting, n})
		}
	}
	return runs
}

// phasesIn are the phases of a run in a setting. Unless said otherwise the rollout is left to the second setting
// when upstream's core runs too, which takes minutes for it and does half of the work in the first; and it is left
// out of the growth, which is about the others.
func (o *options) phasesIn(setting lifecycle.Setting) []string {
	if len(o.phases) > 0 {
		return o.phases
	}
	all := lifecycle.AllPhases()
	if len(o.growth) > 0 || setting == lifecycle.First && slices.Contains(o.cores, cores.Upstream) {
		all = slices.DeleteFunc(all, func(name string) bool { return name == lifecycle.Rollout })
	}
	return all
}

// coreNames are the cores that have a run.
func (o *options) coreNames() []string {
	var names []string
	for _, r := range o.runs() {
		if !slices.Contains(names, r.core) {
			names = append(names, r.core)
		}
	}
	return names
}

// name is that of the file with the results.
func (o *options) name() string {
	if len(o.growth) > 0 {
		return "growth"
	}
	return fmt.Sprintf("%s-%d", strings.Join(o.coreNames(), "-"), o.n)
}
