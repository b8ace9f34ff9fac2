package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
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
		r.recoverLaunch, r.closeAttempt, r.holdBack, r.followOperation,
		r.cleanUpEarlier, r.awaitUserData, r.takeTurn, r.takeSlot, r.useSlot, r.place, r.persistCall, r.create,
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
	if !s.launched.outstanding() || s.launched.Failed != "" {
		return outcome.Continue()
	}
	s.view = r.inventory.Track(s.Key(), s.handle, true)
	if s.view.Known {
		return r.recordLaunched(ctx, s, s.view.Instance)
	}
	if s.view.ListedAt.IsZero() && s.view.Err == nil {
		// Repeating the call is safe where the cloud keeps to its tokens. What the first list shows needs no call, and not every cloud
		// that speaks EC2's API knows tokens.
		s.observed.state = &explanation{driverv1.WaitingForLaunchOutcomeReason, "Waiting for the first list of instances"}
		return outcome.Wait()
	}
	return outcome.Continue()
}

// recordLaunched takes in what a list or the cloud itself shows of a launch whose provider ID is not recorded: an instance, a launch that
// continues, or one that has failed.
func (r *Reconciler[M]) recordLaunched(ctx context.Context, s *scope[M], instance driver.Instance) outcome.Outcome {
	switch {
	case instance.State == driverv1.InstanceFailed && (instance.ProviderID == "" || s.handle.Owns(instance)):
		s.view.Instance, s.view.Known = instance, true
		return r.launchFailedLate(ctx, s, instance)
	case instance.ProviderID == "":
		return outcome.Continue() // Nothing of it is certain yet.
	}
	return r.recordInstance(ctx, s, instance)
}

// holdBack waits until the latest failure may be tried again, whatever woke the object meanwhile.
func (r *Reconciler[M]) holdBack(_ context.Context, s *scope[M]) outcome.Outcome {
	wait, err := r.backoff.remaining(s.Key())
	if wait == 0 {
		return outcome.Continue()
	}
	s.observed.state = r.explainHeld(s, err)
	if refusal := r.unrecorded.get(s.Key()); refusal != "" { // It is written again with the next call, so it stands until then.
		why := explainRefusal(refusal)
		if persist.Refusal(err) == refusal { // No call was made: its record was rejected.
			s.observed.state = why
			return outcome.WaitFor(wait)
		}
		s.observed.state = &explanation{why.reason, why.message + ". The launch had failed: " + s.observed.state.message}
	}
	return outcome.WaitFor(wait)
}

// takeSlot paces launches.
func (r *Reconciler[M]) takeSlot(_ context.Context, s *scope[M]) outcome.Outcome {
	in := r.cloud.LimitScope(s.handle.Scope)
	if wait := r.limiter.Admit(in, driver.CallCreate, s.Key()); wait > 0 {
		if refusal := r.limiter.Closed(in, driver.CallCreate); refusal != nil {
			s.observed.state = explain(refusal)
			return outcome.WaitFor(wait)
		}
		s.observed.state = &explanation{driverv1.WaitingForLaunchSlotReason,
			"Launches are paced to stay within the cloud's limit on calls"}
		return outcome.WaitFor(wait)
	}
	return outcome.Continue()
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
