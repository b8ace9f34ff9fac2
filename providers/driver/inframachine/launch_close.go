package inframachine

import (
	"context"
	"slices"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/shortage"
)

// relaunched are the classes of failures, after the cloud had accepted a launch, for which there is another attempt.
var relaunched = []driver.Class{
	driver.ClassCapacity, driver.ClassQuota, driver.ClassThrottle, driver.ClassAuth, driver.ClassUnresolved, driver.ClassRefused,
}

// launchFailedLate begins to close an attempt that the cloud had accepted and that has failed before its instance ran: no machine has run,
// and the bootstrap data has not been used. It is recorded first, so that the rest may be repeated at any time.
func (r *Reconciler[M]) launchFailedLate(ctx context.Context, s *scope[M], i driver.Instance) outcome.Outcome {
	err := lateFailure(s.launched.placement(), i)
	if s.launched.Failed == "" {
		r.lateFailures.set(s.Key(), lateFailureOf{s.launched.Attempt, err})
	}
	if !slices.Contains(relaunched, i.Refused) {
		s.observed.failure = &explanation{driverv1.InstanceLaunchFailedReason, err.Error()}
		return r.failedForGood(s, i)
	}
	if !r.mayRelaunch(s, i) {
		s.observed.failure = &explanation{explain(err).reason, err.Error() +
			". Not tried again under this Machine, which knows the instance already; replace the Machine"}
		return r.failedForGood(s, i)
	}
	s.observed.state = explain(err)
	if i.ProviderID != "" {
		s.observed.instance = &i
	}
	if s.launched.Failed == "" {
		if shortage.IsShortage(err) {
			err = r.reportShortage(ctx, s, err, true)
			r.lateFailures.set(s.Key(), lateFailureOf{s.launched.Attempt, err})
			s.observed.state = explain(err)
		}
		s.events.Warning(launchFailedEvent, "Launch", "%s", s.observed.state.message)
		if err := s.writeRecord(ctx, s.launched.failed(i.Refused), nil); err != nil {
			return outcome.FromError(err)
		}
	}
	return r.closeAttempt(ctx, s)
}

func (r *Reconciler[M]) failedForGood(s *scope[M], i driver.Instance) outcome.Outcome {
	if i.ProviderID != "" {
		s.observed.instance = &i
	}
	r.inventory.Forget(s.Key())
	return outcome.Wait()
}

// lateFailure is the error of a launch that failed after the cloud had accepted it.
func lateFailure(p driver.Placement, i driver.Instance) error {
	where := p.FailureDomain
	if i.FailureDomain != "" {
		where = i.FailureDomain
	}
	text := "the cloud accepted the launch"
	if p.InstanceType != "" {
		text += " of " + p.InstanceType
	}
	if where != "" {
		text += " in " + where
	}
	text += " and ended it before an instance ran"
	if i.StateMessage != "" {
		text += ": " + i.StateMessage
	}
	class := i.Refused
	if class == "" {
		class = driver.ClassTerminal
	}
	return &driver.Error{Class: class, Operation: "Launch", Code: i.StateCode, OnlyPlace: i.RefusedOnlyPlace,
		AllTypes: i.RefusedAllTypes, Err: errors.New(text)}
}

// lateFailureOf is the failure of an attempt, in the cloud's words.
type lateFailureOf struct {
	attempt int
	err     error
}

// recordedFailure is the failure that the record has: in the cloud's words, if it was this process that has seen it.
func (r *Reconciler[M]) recordedFailure(s *scope[M]) error {
	seen := r.lateFailures.get(s.Key())
	if seen.err != nil && seen.attempt == s.launched.Attempt && driver.ClassOf(seen.err) == s.launched.Failed {
		return seen.err
	}
	return lateFailure(s.launched.placement(), driver.Instance{Refused: s.launched.Failed})
}

// closeAttempt ends what there is of a launch that failed after the cloud had accepted it, and begins the next attempt once nothing is
// left. If a provider ID is recorded, the status first reports that the instance has ended, since the API allows no other to be
// removed. One patch, which fails if the object is not the latest, removes the ID and closes the attempt.
func (r *Reconciler[M]) closeAttempt(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.launched.Failed == "" {
		return outcome.Continue()
	}
	if out := r.confirmFailed(ctx, s); !out.Finished() {
		return out
	}
	why := s.observed.state
	if why == nil {
		why = explain(r.recordedFailure(s))
	}
	if s.Object.CommonSpec().ProviderID != "" && !hasNotRun(s.Object.CommonStatus().InstanceState) {
		s.observed.state, s.observed.missing = why, false
		if s.observed.instance == nil {
			s.observed.instance = &driver.Instance{State: driverv1.InstanceFailed, ID: s.Object.CommonStatus().InstanceID}
		}
		return outcome.WaitFor(rereadDelay)
	}
	out := outcome.InOrder(ctx, s, r.terminateFailed, r.awaitTermination, r.awaitDependants, r.nextAttempt)
	s.observed.missing = false
	if !s.observed.unsettled {
		s.observed.state = cleaningUp(why, s.observed.state)
	}
	return out
}

// mayClose returns whether the record is believed that says of an object with a provider ID that its launch has failed. Whoever
// may write the object may write that: an instance that has run, or that the Machine knows, is not ended because of it.
func (s *scope[M]) mayClose() bool {
	return !s.Object.CommonStatus().IsProvisioned() && (s.owner == nil || s.owner.Spec.ProviderID == "")
}

// hasNotRun is true for states that allow the provider ID to be removed.
func hasNotRun(state driverv1.InstanceState) bool {
	return state == driverv1.InstanceTerminated || state == driverv1.InstanceFailed
}

// cleaningUp explains why the attempt failed and what is being done about what is left of it.
func cleaningUp(why, doing *explanation) *explanation {
	if doing == nil || doing == why || doing.message == "" {
		return why
	}
	return &explanation{why.reason, withoutStopText(why.message) + ". " + doing.message}
}

// terminateFailed is terminate, for a launch of which it is not certain that there is an instance.
func (r *Reconciler[M]) terminateFailed(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.observed.missing {
		return outcome.Continue() // There is nothing to terminate.
	}
	if s.view.Known && s.view.Instance.ProviderID == "" && s.view.Instance.State == driverv1.InstanceFailed {
		s.observed.missing = true
		return outcome.Continue()
	}
	out := r.terminate(ctx, s)
	if _, err := r.backoff.remaining(s.Key()); !out.Finished() && foreignOf(err) != nil {
		s.observed.missing = true // What the record leads to has another owner.
		return outcome.Continue()
	}
	return out
}

// nextAttempt begins the attempt after one that failed late.
func (r *Reconciler[M]) nextAttempt(ctx context.Context, s *scope[M]) outcome.Outcome {
	err := r.recordedFailure(s)
	record := s.launched.afterEnded()
	if refused := s.writeRecord(ctx, record, func(obj M) { obj.CommonSpec().ProviderID = "" }); refused != nil {
		return outcome.FromError(refused)
	}
	r.inventory.Forget(s.Key())
	r.places.Withdraw(s.machine())
	r.followed.forget(s.Key())
	r.terminated.forget(s.Key())
	r.gone.forget(s.Key())
	return outcome.WaitFor(r.failLaunch(s, err, record.Ended))
}

// cleanUpEarlier ends what earlier attempts have left before another one is created: it would cost money for ever, and may have the names
// of what is to be created. As long as another live instance carries the mark of the object, what belongs to that is left alone.
func (r *Reconciler[M]) cleanUpEarlier(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.launched.Attempt <= 1 || s.launched.outstanding() || !r.mayHaveLeft(s) || r.cleaned.get(s.Key()) == s.launched.Attempt {
		return outcome.Continue()
	}
	s.view = r.inventory.Track(s.Key(), s.handle, false)
	if len(s.view.Others) > 0 {
		return outcome.Continue()
	}
	if out := r.awaitDependants(ctx, s); !out.Finished() {
		if s.observed.state != nil {
			s.observed.state = &explanation{driverv1.CleaningUpLaunchReason, "Before the next attempt: " + s.observed.state.message}
		}
		return out
	}
	r.cleaned.set(s.Key(), s.launched.Attempt)
	s.observed.state = nil
	return outcome.Continue()
}

// mayHaveLeft returns whether earlier attempts, and calls that the cloud has refused, may have left something that costs money.
func (r *Reconciler[M]) mayHaveLeft(s *scope[M]) bool {
	return s.launched.Ended > 0 || !r.traits.CleanRefusals
}

// mayRelaunch returns whether the instance is the one that this object's latest attempt created, and its Machine wants one and has
// none yet: a Machine never gets another provider ID.
func (r *Reconciler[M]) mayRelaunch(s *scope[M], i driver.Instance) bool {
	return s.launchedErr == nil && s.launched.Placement != "" && (i.Token == s.launched.token(s.Key().String()) || i.ProviderID == "") &&
		s.owner != nil && s.owner.DeletionTimestamp.IsZero() && s.owner.Spec.ProviderID == "" && r.refersTo(s.owner, s)
}
