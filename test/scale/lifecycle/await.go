package lifecycle

import (
	"context"
	"fmt"
	"time"

	"millwright.dev/test/scale/measure"
)

const (
	// quietTime is how long a core's counters must not change. It is longer than ours batches the status of Clusters
	// (five seconds), so that this write counts in the phase that caused it.
	quietTime = 6 * time.Second
	// quietPoll is how often they are read: reading costs the core a few milliseconds.
	quietPoll = time.Second
	// quietTimeout is when the wait for quiet is given up, and the phase reports that.
	quietTimeout = 2 * time.Minute
	// look is how often a changed view is checked.
	look = 20 * time.Millisecond
)

// MachineController is the name of the Machine controller in the metrics of both cores.
const MachineController = "machine"

// await waits until the view is as wanted, and otherwise reports what is stuck.
func (l *life) await(ctx context.Context, what string, done func(state) bool) error {
	limit, cancel := context.WithTimeoutCause(ctx, l.options.PhaseTimeout, fmt.Errorf("no %s after %s", what, l.options.PhaseTimeout))
	defer cancel()
	alive := time.NewTicker(time.Second)
	defer alive.Stop()
	for !done(l.view.state()) {
		select {
		case <-l.view.changed:
			// Events come in bursts, and a look takes as long as there are Machines.
			time.Sleep(look)
		case <-alive.C:
			if err := l.core.Alive(); err != nil {
				return err
			}
		case err := <-l.stopped:
			return fmt.Errorf("the stand-in providers ended: %w", err)
		case <-limit.Done():
			return fmt.Errorf("%w\n%s", context.Cause(limit), l.diagnose(ctx))
		}
	}
	return nil
}

// awaitQuiet waits until the core only probes and until also, when given, is true of it. It
// returns when the core was last seen active, and false when the wait was given up.
func (l *life) awaitQuiet(ctx context.Context, also func(measure.Sample) bool) (time.Time, bool, error) {
	limit := time.NewTimer(quietTimeout)
	defer limit.Stop()
	ticker := time.NewTicker(quietPoll)
	defer ticker.Stop()
	activity, since := -1, time.Now()
	for {
		s, err := l.sample(ctx)
		if err != nil {
			return since, false, l.explain(err)
		}
		if s.Activity() != activity {
			activity, since = s.Activity(), s.Time
		}
		if s.Time.Sub(since) >= quietTime && (also == nil || also(s)) {
			return since, true, nil
		}
		select {
		case <-ticker.C:
		case <-limit.C:
			return since, false, nil
		case <-ctx.Done():
			return since, false, context.Cause(ctx)
		}
	}
}

// explain prefers the reason why a core does not answer.
func (l *life) explain(err error) error {
	if dead := l.core.Alive(); dead != nil {
		return dead
	}
	return err
}
