package inframachine

import (
	"context"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// confirmFailed continues if the cloud itself agrees with a record that says that the launch has failed: nothing of it lives. Whoever may
// write the object may write the record, and what lives is never ended because of that: then the record is corrected. What a list has shown
// is enough, as the record is made from it.
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
		return outcome.Continue() // It is not listed yet, or never was: that is waited for.
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
	if err := s.writeRecord(ctx, s.launched.failed(""), nil); err != nil {
		return outcome.FromError(err)
	}
	return outcome.WaitFor(rereadDelay)
}

// hasFailed is true for what never runs: a launch that has failed, and what has ended or is ending.
func hasFailed(i driver.Instance) bool {
	return i.State == driverv1.InstanceFailed || hasEnded(i.State)
}
