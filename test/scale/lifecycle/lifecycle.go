package lifecycle

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/go-logr/logr"
	"github.com/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"

	"millwright.dev/test/scale/cores"
	"millwright.dev/test/scale/measure"
	"millwright.dev/test/scale/report"
)

// Options of a run.
type Options struct {
	// Root is the directory of the repository.
	Root string
	// Dir is the directory for logs and kubeconfigs of this run; it is created when missing.
	Dir string
	// FurtherCRDs is a directory with the CRDs that upstream's core requires beside those of Root.
	FurtherCRDs string
	// Setting is the kind of Cluster.
	Setting Setting
	// N is the number of replicas.
	N int
	// HealthCheck has a MachineHealthCheck judge all Machines.
	HealthCheck bool
	// Phases are the names of the phases to run, in the order of AllPhases; all when empty.
	Phases []string
	// CoreArgs are further flags for the core.
	CoreArgs []string
	// PhaseTimeout limits how long a phase may take to reach its state.
	PhaseTimeout time.Duration
	// RequestBodies keeps what the core sends in the audit log.
	RequestBodies bool
	// Log gets the log of the stand-in providers.
	Log logr.Logger
	// Out gets the progress, a line per phase.
	Out io.Writer
}

// life is a run under way.
type life struct {
	*world
	options Options
	binary  cores.Core
	core    *cores.Running
	// replicas is the current target of the deployment.
	replicas int
	run      report.Run
}

// Run takes a MachineDeployment through its life under the core. When it fails, the phases that were
// completed are in the result, and the error says what is stuck.
func Run(ctx context.Context, core cores.Core, o Options) (result report.Run, err error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return report.Run{}, errors.Wrap(err, "creating the directory of a run")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &life{options: o, binary: core, run: report.Run{
		Core: core.Name, Version: core.Version, Setting: string(o.Setting), N: o.N, Started: time.Now().UTC(),
	}}
	if l.world, err = newWorld(ctx, o); err != nil {
		return l.run, err
	}
	defer func() { err = kerrors.NewAggregate([]error{err, l.close()}) }()
	if err := l.start(ctx); err != nil {
		return l.run, err
	}
	defer func() { l.core.Stop() }()
	for _, p := range selected(o.Phases) {
		if err := l.measure(ctx, p); err != nil {
			return l.run, errors.Wrapf(err, "phase %s of the %s core, %s setting, N=%d", p.name, core.Name, o.Setting, o.N)
		}
	}
	return l.run, nil
}

// start runs the core for the first time and waits until it has reached the target cluster and is quiet.
func (l *life) start(ctx context.Context) error {
	if err := l.launch(ctx); err != nil {
		return err
	}
	_, quiet, err := l.awaitQuiet(ctx, func(s measure.Sample) bool { return s.Probes() > 0 })
	if err == nil && !quiet {
		err = fmt.Errorf(
			"the %s core did not reach the target cluster and fall quiet within %s; its log is %s",
			l.binary.Name,
			quietTimeout,
			l.core.Log(),
		)
	}
	return err
}

func (l *life) launch(ctx context.Context) error {
	var err error
	l.core, err = cores.Start(ctx, l.binary, cores.Options{Kubeconfig: l.kubeconfig, Dir: l.options.Dir, Args: l.options.CoreArgs})
	return err
}

// measure runs a phase between two samples.
func (l *life) measure(ctx context.Context, p phase) error {
	if p.prepare != nil {
		if err := p.prepare(ctx, l); err != nil {
			return errors.Wrap(err, "preparing")
		}
		if _, _, err := l.awaitQuiet(ctx, nil); err != nil {
			return err
		}
	}
	if err := measure.ResetPeak(l.core.PID()); err != nil {
		return err
	}
	before, err := l.sample(ctx)
	if err != nil {
		return err
	}
	nodesDeleted, podsEnded := l.view.state().nodesDeleted, l.providers.PodsEnded()
	if p.restarts {
		l.core.Stop()
		before = measure.Sample{Time: time.Now(), ByResource: before.ByResource}
	}
	result := report.Phase{Name: p.name, DeletesMachines: p.deletes}
	if result.Machines, err = p.act(ctx, l); err != nil {
		return err
	}
	result.WallSeconds = time.Since(before.Time).Seconds()
	last, quiet, err := l.awaitQuiet(ctx, l.restarted(p, before))
	if err != nil {
		return err
	}
	after, err := l.sample(ctx)
	if err != nil {
		return err
	}
	result.NotQuiet = !quiet
	result.QuietSeconds = last.Sub(before.Time).Seconds()
	if p.restarts {
		// Only its own counters show that a core has reconciled everything.
		result.WallSeconds = result.QuietSeconds
	}
	result.SetCost(after.Since(before))
	result.NodesDeleted = l.view.state().nodesDeleted - nodesDeleted
	result.PodsEvicted = l.providers.PodsEnded() - podsEnded
	l.run.Phases = append(l.run.Phases, result)
	fmt.Fprintln(l.options.Out, report.Line(l.run, result))
	return l.finish(ctx, p)
}

// restarted is what must be true, beside quiet, of a core that was just restarted: that it has reached
// the target cluster and has reconciled every Machine.
func (l *life) restarted(p phase, before measure.Sample) func(measure.Sample) bool {
	if !p.restarts {
		return nil
	}
	return func(s measure.Sample) bool {
		return s.Probes() > before.Probes() && s.Counters.Reconciles[MachineController] >= l.replicas
	}
}

func (l *life) finish(ctx context.Context, p phase) error {
	if !p.ends {
		return nil
	}
	var err error
	l.run.Leftovers, err = l.leftovers(ctx)
	return err
}

// sample reads the audit log before and after the core's metrics, and again when a health probe came in
// between: probes are distinguished from other requests by both together.
func (l *life) sample(ctx context.Context) (measure.Sample, error) {
	if err := l.core.Alive(); err != nil {
		return measure.Sample{}, err
	}
	before, err := l.audit.Counts()
	if err != nil {
		return measure.Sample{}, err
	}
	s := measure.Sample{Time: time.Now(), ByResource: before}
	for {
		if s.Process, err = measure.ReadProcess(l.core.PID()); err != nil {
			return s, err
		}
		if s.Counters, err = l.core.Counters(ctx); err != nil {
			return s, err
		}
		probes := s.Probes()
		if s.ByResource, err = l.audit.Counts(); err != nil || s.Probes() == probes {
			return s, err
		}
	}
}
