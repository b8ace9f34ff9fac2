package inframachine

import (
	"context"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// launch brings the instance into being, exactly one of it: the record of the launch, with its token
// and its placement, is persisted before each call, and the provider ID right after the answer.
func (r *Reconciler[M]) launch(ctx context.Context, s *scope[M]) outcome {
	if s.handle.ProviderID != "" {
		return proceed()
	}
	if s.launchedErr != nil {
		s.facts.standing = &reasoned{driverv1.LaunchRecordUnreadableReason,
			s.launchedErr.Error() + ". Nothing is launched, since an instance may exist: restore the annotation or delete the object"}
		return untilEvent()
	}
	steps := []func(context.Context, *scope[M]) outcome{
		r.recoverLaunch, r.holdBack, r.readUserData, r.takeTurn, r.takeSlot, r.place, r.persistCall, r.create,
	}
	for _, step := range steps {
		if s.handle.ProviderID != "" {
			break
		}
		if out := step(ctx, s); !out.proceed {
			return out
		}
	}
	return proceed()
}

// recoverLaunch looks for the instance of a call whose answer did not get into the object: the cache
// may lag behind the write, the write may have failed, or this process is not the one that called.
func (r *Reconciler[M]) recoverLaunch(ctx context.Context, s *scope[M]) outcome {
	if !s.launched.outstanding() {
		return proceed()
	}
	if view := r.Inventory.Track(s.key, s.handle, true); view.Known {
		return r.recordInstance(ctx, s, view.Instance)
	}
	return proceed()
}

// holdBack waits until the latest failure may be tried again, whatever woke the object meanwhile.
func (r *Reconciler[M]) holdBack(_ context.Context, s *scope[M]) outcome {
	wait, err := r.backoff.remaining(s.key)
	if wait == 0 {
		return proceed()
	}
	s.facts.standing = explainLaunch(err)
	return untilDeadline(wait)
}

// takeSlot paces launches.
func (r *Reconciler[M]) takeSlot(_ context.Context, s *scope[M]) outcome {
	if wait := r.Pacer.Admit(s.handle.Scope, s.key); wait > 0 {
		s.facts.standing = &reasoned{driverv1.WaitingForLaunchSlotReason,
			"Launches are paced to stay within the cloud's limit on calls"}
		return untilDeadline(wait)
	}
	return proceed()
}

// persistCall writes the record of the call that is about to be made, together with the finalizer:
// from here on there may be an instance. The write fails if the object is not the latest, since a
// stale object may know nothing of an earlier attempt.
func (r *Reconciler[M]) persistCall(ctx context.Context, s *scope[M]) outcome {
	s.uncertain = s.launched.outstanding()
	if err := r.writeRecord(ctx, s, s.launched.called(r.Clock.Now(), s.request.Placement)); err != nil {
		return failed(err)
	}
	return proceed()
}

// create asks the cloud for the instance. The call ends within its time from the record: whoever reads the record counts from
// there how long the call may still take effect, so one that was held up in between, by an API server that answers late or a
// process that slept, is not made.
func (r *Reconciler[M]) create(ctx context.Context, s *scope[M]) outcome {
	left := r.Options.CallTimeout - r.Clock.Now().Sub(*s.launched.LastCall)
	if left <= 0 {
		return untilDeadline(conflictRetry)
	}
	callCtx, cancel := context.WithTimeout(ctx, left)
	defer cancel()
	instance, err := r.Driver.Create(callCtx, s.request)
	if err != nil {
		return r.launchFailed(ctx, s, err, s.launched.after(err, s.uncertain, s.now, r.Options.VisibilityGrace))
	}
	r.backoff.forget(s.key)
	if s.handle.Owns(instance) {
		r.Inventory.Put(s.handle.Scope, instance)
	}
	return r.recordInstance(ctx, s, instance)
}

// recordInstance writes the provider ID, and with it that the cloud has answered only now: from here on the visibility
// grace runs, not from before a call that may have been slow. Should the write fail, the instance is found again by
// its token. It fails if the object is not the latest: another process may have begun another attempt, or somebody recreated the
// object under its name.
func (r *Reconciler[M]) recordInstance(ctx context.Context, s *scope[M], instance driver.Instance) outcome {
	if !s.handle.Owns(instance) {
		return r.isForeign(s, r.foreign(s.handle, instance))
	}
	base, ok := s.obj.DeepCopyObject().(client.Object)
	if !ok {
		return failed(errors.Errorf("%s is not an object", r.Kind))
	}
	s.obj.CommonSpec().ProviderID = instance.ProviderID
	record := s.launched.answered(r.Clock.Now())
	if err := record.writeTo(s.obj); err != nil {
		return failed(err)
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, s.obj, patch); err != nil {
		r.endIfAbandoned(ctx, s, instance, err)
		return failed(errors.Wrapf(err, "recording %s in %s %s", instance.ProviderID, r.Kind, s.key))
	}
	s.launched = record
	s.handle.ProviderID = instance.ProviderID
	s.announceNormal(eventLaunched, "Launch", "Instance %s was launched in %s", instance.ID, instance.FailureDomain)
	return proceed()
}

// launchFailed explains the failure and decides when to try again. record is what is now known of the
// launch.
func (r *Reconciler[M]) launchFailed(ctx context.Context, s *scope[M], err error, record launchRecord) outcome {
	why := explainLaunch(err)
	s.announceWarning(eventLaunchFailed, "Launch", "%s", why.message)
	wait := r.backoff.fail(s.key, err)
	vanished := driver.IsNotFound(err) && s.launched.FirstCall != nil &&
		!s.now.Before(s.launched.FirstCall.Add(r.Options.VisibilityGrace))
	switch {
	case vanished:
		s.facts.failure = &reasoned{driverv1.InstanceVanishedReason,
			"The launch took effect and its instance is gone: " + err.Error()}
	case driver.IsTerminal(err):
		s.facts.failure = why
	default:
		s.facts.standing = why
	}
	if record != s.launched {
		if err := r.writeRecord(ctx, s, record); err != nil {
			return failed(err)
		}
		if record.Placement == "" {
			r.places.Withdraw(s.machine())
		}
	}
	if s.facts.failure != nil {
		return done()
	}
	return untilDeadline(wait)
}

// writeRecord persists the record, and the finalizer with it.
func (r *Reconciler[M]) writeRecord(ctx context.Context, s *scope[M], record launchRecord) error {
	base, ok := s.obj.DeepCopyObject().(client.Object)
	if !ok {
		return errors.Errorf("%s is not an object", r.Kind)
	}
	controllerutil.AddFinalizer(s.obj, Finalizer)
	if err := record.writeTo(s.obj); err != nil {
		return err
	}
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, s.obj, patch); err != nil {
		return errors.Wrapf(err, "recording the launch in %s %s", r.Kind, s.key)
	}
	s.launched = record
	return nil
}
