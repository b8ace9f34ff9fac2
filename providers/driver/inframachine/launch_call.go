package inframachine

import (
	"context"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/shortage"
)

// persistCall writes the record of the call that is about to be made, together with the finalizer:
// from here on there may be an instance. The write fails if the object is not the latest, since a
// stale object may know nothing of an earlier attempt.
func (r *Reconciler[M]) persistCall(ctx context.Context, s *scope[M]) outcome.Outcome {
	s.uncertain = s.launched.outstanding()
	record := s.launched.called(r.Clock.Now(), s.request.Placement)
	if !s.uncertain { // The repetition of a call is the same call.
		lineage, wait := r.lineage(ctx, s)
		if wait > 0 {
			return outcome.WaitFor(wait)
		}
		record.Lineage = lineage
	}
	if err := s.writeRecord(ctx, record, nil); err != nil {
		return r.notRecorded(s, err)
	}
	r.unrecorded.forget(s.Key())
	s.request.Lineage = record.Lineage
	return outcome.Continue()
}

// notRecorded backs off before the next launch if the API server rejects the record of this one. Until then holdBack reports it, so
// that the
// wait for a slot does not hide it.
func (r *Reconciler[M]) notRecorded(s *scope[M], err error) outcome.Outcome {
	refusal := persist.Refusal(err)
	if refusal == "" {
		return outcome.FromError(err)
	}
	r.unrecorded.set(s.Key(), refusal)
	s.observed.state = explainRefusal(refusal)
	s.events.Warning(launchFailedEvent, "Launch", "%s", s.observed.state.message)
	return outcome.WaitFor(r.backoff.fail(s.Key(), err))
}

// create asks the cloud for the instance. The call ends within its time from the record: anyone who reads the record counts from
// there how long the call may still take effect, so one that was held up in between, by an API server that answers late or a
// process that slept, is not made.
func (r *Reconciler[M]) create(ctx context.Context, s *scope[M]) outcome.Outcome {
	left := r.Options.CallTimeout - r.Clock.Now().Sub(*s.launched.LastCall)
	if left <= 0 {
		return outcome.WaitFor(rereadDelay)
	}
	callCtx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	accepted, err := r.cloud.Create(callCtx, s.request)
	if driver.IsConflict(err) {
		return r.resolveConflict(ctx, s, err)
	}
	if err == nil && accepted.Instance.ProviderID == "" && (accepted.Operation == "" || !validOperation.MatchString(accepted.Operation)) {
		err = driver.NewUnknownError("Create", "", errors.New("the driver returned neither an instance nor an operation that can be recorded"))
	}
	if err != nil {
		return r.createFailed(ctx, s, err)
	}
	r.backoff.forget(s.Key())
	if accepted.Instance.ProviderID == "" {
		return r.recordAccepted(ctx, s, accepted.Operation)
	}
	if s.handle.Owns(accepted.Instance) {
		r.inventory.Put(s.handle.Scope, accepted.Instance)
	}
	return r.recordInstance(ctx, s, accepted.Instance)
}

// createFailed takes in that the call failed.
func (r *Reconciler[M]) createFailed(ctx context.Context, s *scope[M], err error) outcome.Outcome {
	record := s.launched.after(err, s.uncertain && (!driver.IsQuota(err) || !r.isAbsent(s)), s.Now, r.grace(s))
	if shortage.IsShortage(err) {
		err = r.reportShortage(ctx, s, err, record.Placement == "")
	}
	if out, left := r.leaveType(ctx, s, err); left {
		return out
	}
	return r.launchFailed(ctx, s, err, record)
}

// recordInstance writes the provider ID, and with it that the cloud has answered only now: from here on the visibility
// grace runs, not from before a call that may have been slow. Should the write fail, the instance is found again by
// its token. It fails if the object is not the latest: another process may have begun another attempt, or a user recreated the
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
	s.events.Normal(launchedEvent, "Launch", "Instance %s was launched%s", instance.ID, in(instance.FailureDomain))
	return outcome.Continue()
}

// launchFailed explains the failure and decides when to try again. record is what is now known of the
// launch.
func (r *Reconciler[M]) launchFailed(ctx context.Context, s *scope[M], err error, record launchRecord) outcome.Outcome {
	why := r.explainHeld(s, err)
	s.events.Warning(launchFailedEvent, "Launch", "%s", why.message)
	wait := r.failLaunch(s, err, 1)
	vanished := driver.IsNotFound(err) && s.launched.FirstCall != nil && !s.Now.Before(s.launched.FirstCall.Add(r.grace(s)))
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
			r.unrecorded.set(s.Key(), persist.Refusal(err))
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
