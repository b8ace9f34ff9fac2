package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// rereadDelay is when an object is reconciled again that has to be read again first: by then the cache has the latest write.
const rereadDelay = 500 * time.Millisecond

// launch brings the instance into being, exactly one of it: the record of the launch, with its token
// and its placement, is persisted before each call, and the provider ID right after the answer.
func (r *Reconciler[M]) launch(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.handle.ProviderID != "" {
		return outcome.Continue()
	}
	if s.launchedErr != nil {
		s.observed.state = &explanation{driverv1.LaunchRecordUnreadableReason,
			s.launchedErr.Error() + ". Nothing is launched, since an instance may exist: restore the annotation or delete the object"}
		return outcome.Wait()
	}
	steps := []outcome.Step[*scope[M]]{
		r.recoverLaunch, r.holdBack, r.readUserData, r.takeTurn, r.takeSlot, r.place, r.persistCall, r.create,
	}
	for n, step := range steps {
		steps[n] = unlessLaunched(step)
	}
	return outcome.InOrder(ctx, s, steps...)
}

// unlessLaunched leaves the step out once the instance is recorded.
func unlessLaunched[M driver.Object](step outcome.Step[*scope[M]]) outcome.Step[*scope[M]] {
	return func(ctx context.Context, s *scope[M]) outcome.Outcome {
		if s.handle.ProviderID != "" {
			return outcome.Continue()
		}
		return step(ctx, s)
	}
}

// recoverLaunch looks for the instance of a call whose answer did not get into the object: the cache
// may lag behind the write, the write may have failed, or this process is not the one that called.
func (r *Reconciler[M]) recoverLaunch(ctx context.Context, s *scope[M]) outcome.Outcome {
	if !s.launched.outstanding() {
		return outcome.Continue()
	}
	if view := r.Inventory.Track(s.Key(), s.handle, true); view.Known {
		return r.recordInstance(ctx, s, view.Instance)
	}
	return outcome.Continue()
}

// holdBack waits until the latest failure may be tried again, whatever woke the object meanwhile.
func (r *Reconciler[M]) holdBack(_ context.Context, s *scope[M]) outcome.Outcome {
	wait, err := r.backoff.remaining(s.Key())
	if wait == 0 {
		return outcome.Continue()
	}
	s.observed.state = explainLaunch(err)
	return outcome.WaitFor(wait)
}

// takeSlot paces launches.
func (r *Reconciler[M]) takeSlot(_ context.Context, s *scope[M]) outcome.Outcome {
	if wait := r.Pacer.Admit(s.handle.Scope, s.Key()); wait > 0 {
		s.observed.state = &explanation{driverv1.WaitingForLaunchSlotReason,
			"Launches are paced to stay within the cloud's limit on calls"}
		return outcome.WaitFor(wait)
	}
	return outcome.Continue()
}

// persistCall writes the record of the call that is about to be made, together with the finalizer:
// from here on there may be an instance. The write fails if the object is not the latest, since a
// stale object may know nothing of an earlier attempt.
func (r *Reconciler[M]) persistCall(ctx context.Context, s *scope[M]) outcome.Outcome {
	s.uncertain = s.launched.outstanding()
	if err := s.writeRecord(ctx, s.launched.called(r.Clock.Now(), s.request.Placement), nil); err != nil {
		return outcome.FromError(err)
	}
	return outcome.Continue()
}

// create asks the cloud for the instance. The call ends within its time from the record: whoever reads the record counts from
// there how long the call may still take effect, so one that was held up in between, by an API server that answers late or a
// process that slept, is not made.
func (r *Reconciler[M]) create(ctx context.Context, s *scope[M]) outcome.Outcome {
	left := r.Options.CallTimeout - r.Clock.Now().Sub(*s.launched.LastCall)
	if left <= 0 {
		return outcome.WaitFor(rereadDelay)
	}
	callCtx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	instance, err := r.Driver.Create(callCtx, s.request)
	if err != nil {
		return r.launchFailed(ctx, s, err, s.launched.after(err, s.uncertain, s.Now, r.Options.VisibilityGrace))
	}
	r.backoff.forget(s.Key())
	if s.handle.Owns(instance) {
		r.Inventory.Put(s.handle.Scope, instance)
	}
	return r.recordInstance(ctx, s, instance)
}

// recordInstance writes the provider ID, and with it that the cloud has answered only now: from here on the visibility
// grace runs, not from before a call that may have been slow. Should the write fail, the instance is found again by
// its token. It fails if the object is not the latest: another process may have begun another attempt, or somebody recreated the
// object under its name.
func (r *Reconciler[M]) recordInstance(ctx context.Context, s *scope[M], instance driver.Instance) outcome.Outcome {
	if !s.handle.Owns(instance) {
		return r.isForeign(s, r.foreign(s.handle, instance))
	}
	err := s.writeRecord(ctx, s.launched.answered(r.Clock.Now()), func(obj M) { obj.CommonSpec().ProviderID = instance.ProviderID })
	if err != nil {
		r.terminateIfAbandoned(ctx, s, instance, err)
		return outcome.FromError(errors.Wrapf(err, "recording %s", instance.ProviderID))
	}
	s.handle.ProviderID = instance.ProviderID
	s.events.Normal(eventLaunched, "Launch", "Instance %s was launched in %s", instance.ID, instance.FailureDomain)
	return outcome.Continue()
}

// launchFailed explains the failure and decides when to try again. record is what is now known of the
// launch.
func (r *Reconciler[M]) launchFailed(ctx context.Context, s *scope[M], err error, record launchRecord) outcome.Outcome {
	why := explainLaunch(err)
	s.events.Warning(eventLaunchFailed, "Launch", "%s", why.message)
	wait := r.backoff.fail(s.Key(), err)
	vanished := driver.IsNotFound(err) && s.launched.FirstCall != nil &&
		!s.Now.Before(s.launched.FirstCall.Add(r.Options.VisibilityGrace))
	switch {
	case vanished:
		s.observed.failure = &explanation{driverv1.InstanceVanishedReason,
			"The launch took effect and its instance is gone: " + err.Error()}
	case driver.IsTerminal(err):
		s.observed.failure = why
	default:
		s.observed.state = why
	}
	if record != s.launched {
		if err := s.writeRecord(ctx, record, nil); err != nil {
			return outcome.FromError(err)
		}
		if record.Placement == "" {
			r.places.Withdraw(s.machine())
		}
	}
	if s.observed.failure != nil {
		return outcome.Wait()
	}
	return outcome.WaitFor(wait)
}

// writeRecord persists the record, the finalizer with it, and what else change sets, if it is not nil. It is written even if it is
// the same as before, and fails if the object is not the latest: what follows must not be based on an older record.
func (s *scope[M]) writeRecord(ctx context.Context, record launchRecord, change func(M)) error {
	text, err := record.encode()
	if err != nil {
		return err
	}
	err = s.PatchLatest(ctx, func(obj M) {
		controllerutil.AddFinalizer(obj, Finalizer)
		putRecord(obj, text)
		if change != nil {
			change(obj)
		}
	})
	if err != nil {
		return errors.Wrap(err, "recording the launch")
	}
	s.launched, s.request.Object = record, s.Object
	return nil
}
