// Command bench runs the benchmark of the cores and writes tables to standard output and JSON to a
// file. Progress goes to standard error.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/go-logr/logr"
	ctrl "sigs.k8s.io/controller-runtime"

	"millwright.dev/test/controlplane"
	"millwright.dev/test/scale/cores"
	"millwright.dev/test/scale/lifecycle"
	"millwright.dev/test/scale/report"
)

// upstreamCRDs are in upstream's module.
const upstreamCRDs = "core/config/crd/bases"

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGINT, syscall.SIGTERM)
	err := run(ctx, os.Args[1:])
	stop()
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
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
	b := &bench{options: o, root: root, out: o.out}
	if !filepath.IsAbs(b.out) {
		b.out = filepath.Join(root, b.out)
	}
	b.file = report.File{Command: "bench " + strings.Join(args, " "), Host: report.ThisHost()}
	if err := b.prepare(ctx); err != nil {
		return err
	}
	runErr := b.all(ctx)
	if err := b.write(); err != nil {
		return errors.Join(runErr, err)
	}
	return errors.Join(runErr, b.check())
}

// bench is a benchmark under way.
type bench struct {
	options options
	root    string
	out     string
	// crds is the directory with upstream's CRDs.
	crds  string
	cores map[string]cores.Core
	file  report.File
}

// prepare builds what will be run.
func (b *bench) prepare(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "list", "-m", "-f", "{{.Dir}}", "sigs.k8s.io/cluster-api")
	cmd.Dir = b.root
	dir, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("finding upstream's module: %w", err)
	}
	b.crds = filepath.Join(strings.TrimSpace(string(dir)), upstreamCRDs)
	if os.Getenv(controlplane.AssetsEnv) == "" {
		if _, err := controlplane.Build(ctx, os.Stderr, false); err != nil {
			return err
		}
	}
	b.cores = map[string]cores.Core{}
	for _, name := range b.options.coreNames() {
		var core cores.Core
		switch {
		case name == cores.Upstream:
			core, err = cores.BuildUpstream(ctx, b.root, os.Stderr)
		case b.options.binary != "":
			core = cores.Core{Name: cores.Ours, Version: b.options.binary, Path: b.options.binary}
		default:
			core, err = cores.BuildOurs(ctx, b.root, filepath.Join(b.out, "bin"), os.Stderr)
		}
		if err != nil {
			return err
		}
		b.cores[name] = core
	}
	return nil
}

// all executes the runs one after the other; each has the machine for itself.
func (b *bench) all(ctx context.Context) error {
	for _, r := range b.options.runs() {
		begin := time.Now()
		result, err := lifecycle.Run(ctx, b.cores[r.core], lifecycle.Options{
			Root:          b.root,
			Dir:           filepath.Join(b.out, "logs", fmt.Sprintf("%s-%s-%d", r.core, r.setting, r.n)),
			FurtherCRDs:   b.crds,
			Setting:       r.setting,
			N:             r.n,
			HealthCheck:   b.options.healthCheck,
			Phases:        b.options.phasesIn(r.setting),
			CoreArgs:      b.options.coreArgs,
			PhaseTimeout:  b.options.phaseTimeout,
			RequestBodies: b.options.bodies,
			Log:           logr.Discard(),
			Out:           os.Stderr,
		})
		b.file.Runs = append(b.file.Runs, result)
		if err != nil {
			return err
		}
		fmt.Fprintf(os.Stderr, "%-8s %-6s N=%-5d done in %s\n", r.core, r.setting, r.n, time.Since(begin).Round(time.Second))
	}
	return nil
}

// write shows the results and keeps them as JSON.
func (b *bench) write() error {
	if len(b.options.growth) > 0 {
		report.Growth(os.Stdout, b.file.Runs)
	} else {
		report.Tables(os.Stdout, b.file.Runs)
	}
	if b.options.byResource {
		report.Resources(os.Stdout, b.file.Runs)
	}
	path := filepath.Join(b.out, b.options.name()+".json")
	fmt.Fprintln(os.Stderr, "results:", path)
	return b.file.Write(path)
}

// check compares our runs with the budget.
func (b *bench) check() error {
	if b.options.check == "" {
		return nil
	}
	budget, err := report.ReadBudget(filepath.Join(b.root, b.options.check))
	if err != nil {
		return err
	}
	var exceeded []string
	for i := range b.file.Runs {
		if r := &b.file.Runs[i]; r.Core == cores.Ours {
			exceeded = append(exceeded, budget.Check(r)...)
		}
	}
	if len(exceeded) == 0 {
		fmt.Fprintln(os.Stdout, "\nThe budget is kept.")
		return nil
	}
	if !b.options.byResource {
		report.Resources(os.Stdout, b.file.Runs)
	}
	return fmt.Errorf("the budget is exceeded:\n  %s", strings.Join(exceeded, "\n  "))
}
