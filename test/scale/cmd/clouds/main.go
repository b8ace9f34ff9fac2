// Command clouds measures what infrastructure providers cost in calls to their cloud, and writes tables to standard output and JSON to a
// file. Progress goes to standard error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"syscall"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/clouds"
	"millwright.dev/test/scale/cores"
	"millwright.dev/test/scale/report"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "clouds:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	ctrl.SetLogger(logr.Discard())
	root, err := controlplane.Root()
	if err != nil {
		return err
	}
	if !filepath.IsAbs(o.out) {
		o.out = filepath.Join(root, o.out)
	}
	if os.Getenv(controlplane.AssetsEnv) == "" {
		if _, err := controlplane.Build(ctx, os.Stderr, false); err != nil {
			return err
		}
	}
	providers, err := build(ctx, root, o)
	if err != nil {
		return err
	}
	file := report.CloudFile{
		Command: "clouds " + strings.Join(args, " "), Host: report.ThisHost(),
		Account: report.CloudAccount{
			PendingSeconds: o.pending.Seconds(), ShuttingDownSeconds: o.shuttingDown.Seconds(), ConsistencySeconds: o.consistency.Seconds(),
		},
	}
	runErr := measureAll(ctx, root, o, providers, &file)
	report.CloudTables(os.Stdout, file.Runs)
	path := filepath.Join(o.out, fmt.Sprintf("clouds-%s-%d.json", strings.Join(o.providers, "-"), o.n))
	fmt.Fprintln(os.Stderr, "results:", path)
	return errors.Join(runErr, file.Write(path), compare(o, file.Runs))
}

// build builds the managers; those of others come from their modules.
func build(ctx context.Context, root string, o options) ([]clouds.Provider, error) {
	var providers []clouds.Provider
	for _, name := range o.providers {
		p, err := buildOne(ctx, root, o, name)
		if err != nil {
			return nil, err
		}
		providers = append(providers, p)
	}
	return providers, nil
}

func buildOne(ctx context.Context, root string, o options, name string) (clouds.Provider, error) {
	if name == clouds.NameOurs {
		path, version, err := cores.BuildProgram(ctx, root, filepath.Join(o.out, "bin", "aws"), "./providers/aws", os.Stderr)
		return clouds.Ours(cores.Core{Name: name, Version: version, Path: path}, root), err
	}
	path, version, err := cores.BuildTool(ctx, root, clouds.CAPATool, os.Stderr)
	if err != nil {
		return clouds.Provider{}, err
	}
	module, err := cores.ModuleDirectory(ctx, root, clouds.CAPATool)
	return clouds.CAPA(cores.Core{Name: name, Version: version, Path: path, ExtraArgs: o.capaArgs}, module), err
}

// measureAll executes the runs: one after the other, so that each has the machine for itself, or at the same time.
func measureAll(ctx context.Context, root string, o options, providers []clouds.Provider, file *report.CloudFile) error {
	atOnce := 1
	if o.sideBySide {
		atOnce = len(providers)
	}
	free := make(chan struct{}, atOnce)
	file.Runs = make([]report.CloudRun, len(providers))
	failures := make([]error, len(providers))
	var group sync.WaitGroup
	for i, p := range providers {
		free <- struct{}{}
		group.Go(func() {
			defer func() { <-free }()
			file.Runs[i], failures[i] = clouds.Run(ctx, p, clouds.Options{
				Root: root, Dir: filepath.Join(o.out, "logs", fmt.Sprintf("clouds-%s-%d", p.Name, o.n)),
				N: o.n, Idle: o.idle, PhaseTimeout: o.phaseTimeout, Out: os.Stderr,
				Delays: simapi.Delays{Pending: o.pending, ShuttingDown: o.shuttingDown, Consistency: o.consistency},
			})
		})
	}
	group.Wait()
	return errors.Join(failures...)
}

// compare compares complete runs of ours with the goals.
func compare(o options, runs []report.CloudRun) error {
	for i := range runs {
		if runs[i].Provider != clouds.NameOurs || runs[i].Leftovers == nil {
			continue
		}
		fmt.Fprintln(os.Stdout)
		report.CloudGoals(os.Stdout, &runs[i])
		if missed := report.MissedCloudGoals(&runs[i]); len(missed) > 0 && o.check {
			return fmt.Errorf("goals are missed:\n  %s", strings.Join(missed, "\n  "))
		}
	}
	return nil
}
