package inframachine

import (
	"context"
	"time"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// confirmFailed continues if the cloud itself agrees with a record that says that the launch has failed: nothing of it lives. Anyone who
// may write the object may write the record, and what lives is never ended because of that: then the record is corrected. What a list has
// shown is enough, as the record is written from it.
func (r *Reconciler[M]) confirmFailed(ctx context.Context, s *scope[M]) outcome.Outcome {
	if !s.view.Known {
		s.view = r.inventory.Track(s.Key(), s.handle, true)
	}
	if r.dead.get(s.Key()) == s.launched.Attempt {
		s.observed.missing = true
		return outcome.Continue()
	}
	if s.view.Known && hasFailed(s.view.Instance) {
		return outcome.Continue()
	}
	if wait, err := r.backoff.remaining(s.Key()); wait > 0 {
		s.observed.state = explainDeletion(err)
		if foreignOf(err) != nil {
			return r.isForeign(s, err)
		}
		return outcome.WaitFor(wait)
	}
	if out := r.takeTurn(ctx, s); !out.Finished() {
		return out
	}
	instance, err := r.askCloud(ctx, s)
	switch {
	case driver.IsNotFound(err) && r.graceLeft(s, s.Now) > 0:
		s.observed.state = &explanation{driverv1.WaitingForLaunchOutcomeReason, "The launch has failed by its record; looking for its instance"}
		return outcome.WaitFor(min(r.graceLeft(s, s.Now), r.backoff.fail(s.Key(), err))) // The inventory wakes the object if it shows up before.
	case driver.IsNotFound(err), err == nil && s.isNamesake(instance):
		r.dead.set(s.Key(), s.launched.Attempt)
		s.observed.missing = true
		return outcome.Continue()
	case err == nil && hasFailed(instance):
		s.view.Instance, s.view.Known = instance, true
		return outcome.Continue()
	case err == nil && !s.handle.Owns(instance) && instance.ProviderID != "":
		return r.isForeign(s, r.foreign(s.handle, instance))
	case err != nil:
		s.observed.state = explainDeletion(err)
		return outcome.WaitFor(r.backoff.fail(s.Key(), err))
	}
	if wait := r.aliveLeft(s); wait > 0 {
		return outcome.WaitFor(wait)
	}
	if err := s.writeRecord(ctx, s.launched.failed(""), nil); err != nil {
		return outcome.FromError(err)
	}
	return outcome.WaitFor(rereadDelay)
}

// aliveLeft is for how long the cloud has to show a launch alive, which the record says has failed, before that is believed: where reads
// lag, what they show may be from before the failure.
func (r *Reconciler[M]) aliveLeft(s *scope[M]) time.Duration {
	if r.traits.StrongReads {
		return 0
	}
	since := r.alive.get(s.Key())
	if since.attempt != s.launched.Attempt {
		since = aliveSince{s.launched.Attempt, s.Now}
		r.alive.set(s.Key(), since)
	}
	s.observed.state = &explanation{driverv1.WaitingForLaunchOutcomeReason,
		"The launch has failed by its record, and the cloud shows its instance; looking at it again"}
	return since.at.Add(settleGrace).Sub(s.Now)
}

// aliveSince is since when the cloud has shown an attempt alive of which the record says that it has failed.
type aliveSince struct {
	attempt int
	at      time.Time
}

// hasFailed is true for what never runs: a launch that has failed, and what has ended or is ending.
func hasFailed(i driver.Instance) bool {
	return i.State == driverv1.InstanceFailed || hasEnded(i.State)
}
