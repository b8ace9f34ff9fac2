package clouds

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/pkg/errors"
	kerrors "k8s.io/apimachinery/pkg/util/errors"

	"millwright.dev/test/clouds/aws/simapi"
	"millwright.dev/test/scale/cores"
	"millwright.dev/test/scale/measure"
	"millwright.dev/test/scale/report"
)

const (
	// look is how often the infrastructure machines are checked.
	look = 500 * time.Millisecond
	// settled is how long no call may come before a phase is over: late calls count in the phase that caused them.
	settled = 20 * time.Second
	// settleTimeout is when the wait for that is given up.
	settleTimeout = 5 * time.Minute
)

// Options of a run.
type Options struct {
	// Root is the directory of the repository.
	Root string
	// Dir takes logs and kubeconfigs; it is created when missing.
	Dir string
	// N is the number of Machines.
	N int
	// Idle is the length of the window in steady state.
	Idle time.Duration
	// PhaseTimeout limits launch and deletion.
	PhaseTimeout time.Duration
	// Delays are those of the account.
	Delays simapi.Delays
	// Out gets the progress.
	Out io.Writer
}

// life is a run under way.
type life struct {
	*world
	options Options
	manager *cores.Running
	run     report.CloudRun
}

// Run takes Machines through their life under the provider. When it fails, the phases that were completed are in the result.
func Run(ctx context.Context, p Provider, o Options) (result report.CloudRun, err error) {
	if err := os.MkdirAll(o.Dir, 0o750); err != nil {
		return report.CloudRun{}, errors.Wrap(err, "creating the directory of a run")
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	l := &life{options: o, run: report.CloudRun{Provider: p.Name, Version: p.Version, N: o.N, Started: time.Now().UTC()}}
	if l.world, err = newWorld(ctx, &p, o); err != nil {
		return l.run, err
	}
	defer func() { err = kerrors.NewAggregate([]error{err, l.close()}) }()
	env, args := p.Endpoint(l.front.URL)
	l.manager, err = cores.Start(ctx, p.Core, cores.Options{
		Kubeconfig: l.kubeconfig, Dir: o.Dir, Args: args, OwnLimits: true,
		Env: append([]string{
			"AWS_REGION=" + region, "AWS_ACCESS_KEY_ID=AKIABENCH00000000000", "AWS_SECRET_ACCESS_KEY=bench", "AWS_EC2_METADATA_DISABLED=true",
			"POD_NAMESPACE=" + p.Namespace, "POD_NAME=" + p.Name, "POD_UID=" + p.Name,
		}, env...),
	})
	if err != nil {
		return l.run, err
	}
	defer l.manager.Stop()
	for _, phase := range []struct {
		name string
		act  func(context.Context) error
	}{{report.Launch, l.launch}, {report.Steady, l.idle}, {report.Deletion, l.delete}} {
		if err := l.measure(ctx, phase.name, phase.act); err != nil {
			return l.run, errors.Wrapf(err, "%s under the %s provider, N=%d; its log is %s", phase.name, p.Name, o.N, l.manager.Log())
		}
	}
	l.run.Leftovers = l.leftovers()
	return l.run, nil
}

// measure runs a phase between two samples.
func (l *life) measure(ctx context.Context, name string, act func(context.Context) error) error {
	if err := measure.ResetPeak(l.manager.PID()); err != nil {
		return err
	}
	before, err := l.sample(ctx)
	if err != nil {
		return err
	}
	l.account.ClearCalls()
	if err := act(ctx); err != nil {
		return err
	}
	p := report.CloudPhase{Name: name, WallSeconds: time.Since(before.Time).Seconds()}
	if name != report.Steady {
		if err := l.settle(ctx); err != nil {
			return err
		}
	}
	countCalls(&p, l.account.Calls())
	after, err := l.sample(ctx)
	if err != nil {
		return err
	}
	cost := after.Since(before)
	p.Requests, p.Reconciles = cost.ByResource, cost.Counters.Reconciles
	p.CPUSeconds, p.PeakRSSBytes = cost.CPU.Seconds(), cost.PeakRSS
	l.run.Phases = append(l.run.Phases, p)
	fmt.Fprintln(l.options.Out, report.CloudLine(&l.run, &p))
	return nil
}

func (l *life) sample(ctx context.Context) (measure.Sample, error) {
	if err := l.manager.Alive(); err != nil {
		return measure.Sample{}, err
	}
	s := measure.Sample{Time: time.Now()}
	var err error
	if s.Process, err = measure.ReadProcess(l.manager.PID()); err != nil {
		return s, err
	}
	if s.Counters, err = l.manager.Counters(ctx); err != nil {
		return s, err
	}
	s.ByResource, err = l.audit.Counts()
	return s, err
}

// settle waits until no call has come for a while.
func (l *life) settle(ctx context.Context) error {
	limit := time.Now().Add(settleTimeout)
	for last, since := -1, time.Now(); time.Since(since) < settled && time.Now().Before(limit); {
		if n := len(l.account.Calls()); n != last {
			last, since = n, time.Now()
		}
		if err := l.pause(ctx, time.Second); err != nil {
			return err
		}
	}
	return nil
}

// pause waits, unless the manager has exited.
func (l *life) pause(ctx context.Context, d time.Duration) error {
	if err := l.manager.Alive(); err != nil {
		return err
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// countCalls sums up calls by action, and what was refused.
func countCalls(p *report.CloudPhase, calls []simapi.Call) {
	p.Calls, p.Throttled, p.Refused = map[string]int{}, map[string]int{}, map[string]int{}
	for i := range calls {
		c := &calls[i]
		p.Calls[c.Action]++
		switch c.Code {
		case "":
		case "RequestLimitExceeded":
			p.Throttled[c.Action]++
		default:
			p.Refused[c.Action+" "+c.Code]++
		}
	}
}
