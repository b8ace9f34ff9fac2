package life

import (
	"context"
	"fmt"
	"time"

	"millwright.dev/test/scale/measure"
)

const (
	// quietTime is how long a core's counters must stand still.
	quietTime = 2 * time.Second
	// quietPoll is how often they are read: reading costs the core a few milliseconds.
	quietPoll = time.Second
	// quietTimeout is when the wait for quiet is given up, and the phase says that it never came.
	quietTimeout = 2 * time.Minute
	// look is how often a changed view is looked at.
	look = 20 * time.Millisecond
)

// MachineController is the name of the Machine controller in the metrics of both cores.
const MachineController = "machine"

// await waits until the view is as wanted, and otherwise says who is stuck.
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

// awaitQuiet waits until the core does nothing but probe and until also, when given, is true of its
// counters. It returns when the counters changed for the last time, and false when that never came.
func (l *life) awaitQuiet(ctx context.Context, also func(measure.Counters) bool) (time.Time, bool, error) {
	give := time.NewTimer(quietTimeout)
	defer give.Stop()
	ticker := time.NewTicker(quietPoll)
	defer ticker.Stop()
	activity, since := -1, time.Now()
	for {
		counters, err := l.core.Counters(ctx)
		if err != nil {
			return since, false, l.explain(err)
		}
		if a := counters.Activity(); a != activity {
			activity, since = a, time.Now()
		}
		if time.Since(since) >= quietTime && (also == nil || also(counters)) {
			return since, true, nil
		}
		select {
		case <-ticker.C:
		case <-give.C:
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
