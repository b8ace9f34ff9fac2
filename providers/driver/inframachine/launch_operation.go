package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// recordAccepted writes that the cloud has accepted the launch, and by which operation it continues. Should the write
// fail, the call is repeated, and the cloud answers that it has that already.
func (r *Reconciler[M]) recordAccepted(ctx context.Context, s *scope[M], operation string) outcome.Outcome {
	if err := s.writeRecord(ctx, s.launched.accepted(r.Clock.Now(), operation), nil); err != nil {
		return outcome.FromError(errors.Wrapf(err, "recording operation %s", operation))
	}
	s.handle.Operation = operation
	s.view = r.inventory.Track(s.Key(), s.handle, true)
	s.observed.state = acceptedLaunch(operation)
	return outcome.WaitFor(r.followAfter(s))
}

func acceptedLaunch(operation string) *explanation {
	return &explanation{driverv1.InstancePendingReason, "The cloud has accepted the launch; waiting for its operation " + operation}
}

// followOperation waits for a launch that the cloud has accepted. The list of instances shows most of what may become of it and wakes the
// object; the operation itself is read, for many machines in one call, for the rest: a failure that leaves nothing to be listed.
func (r *Reconciler[M]) followOperation(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.launched.Operation == "" {
		return outcome.Continue()
	}
	s.observed.state = acceptedLaunch(s.launched.Operation)
	answer, answered := r.operations.Take(s.Key(), s.handle)
	if !answered {
		if wait := r.followAfter(s); wait > 0 {
			return outcome.WaitFor(wait)
		}
		return r.awaitAnswer(s, r.operations.Ask(s.Key(), s.handle), s.observed.state)
	}
	r.followed.set(s.Key(), answer.At)
	return r.takeOperation(ctx, s, answer.Value, answer.Err, answer.At)
}

// takeOperation takes in what the cloud has answered about the launch at that time.
func (r *Reconciler[M]) takeOperation(ctx context.Context, s *scope[M], i driver.Instance, err error, at time.Time) outcome.Outcome {
	switch {
	case driver.IsNotFound(err):
		if wait := r.graceLeft(s, at); wait > 0 {
			return outcome.WaitFor(min(wait, r.backoff.fail(s.Key(), err)))
		}
		s.observed.missing = true
		s.observed.failure = vanished().why
		return outcome.Wait()
	case err != nil:
		s.observed.state = explain(err)
		return outcome.WaitFor(r.backoff.fail(s.Key(), err))
	}
	r.backoff.forget(s.Key())
	if out := r.recordLaunched(ctx, s, i); !out.Finished() || s.handle.ProviderID != "" {
		return out
	}
	if !at.Before(s.launchedAt().Add(s.launchTimeout())) {
		s.observed.failure = &explanation{driverv1.InstanceLaunchTimeoutReason, "The cloud accepted the launch and did not finish its operation " +
			s.launched.Operation + " within " + s.launchTimeout().String()}
		return outcome.Wait()
	}
	return outcome.WaitFor(r.followAfter(s))
}

// followAfter is the time until the operation is read again: at the pace of fast lists at first, then whenever the wait has
// become longer by a tenth.
func (r *Reconciler[M]) followAfter(s *scope[M]) time.Duration {
	last := r.followed.get(s.Key())
	if last.IsZero() {
		last = s.launchedAt()
	}
	return last.Add(max(r.Options.ListFast, s.Now.Sub(s.launchedAt())/10)).Sub(s.Now)
}
