package inframachine

import (
	"context"
	"strings"
	"sync"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/utils/ptr"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// isUserDataDue returns whether stored user data is not needed any more by an object that stays: its Machine has a Node, so that the
// instance has read it, or the machine has failed permanently.
func (r *Reconciler[M]) isUserDataDue(s *scope[M]) bool {
	joined := s.owner != nil && s.owner.Status.NodeRef.IsDefined() && s.handle.ProviderID != ""
	failed := s.Object.CommonStatus().HasFailed() || s.observed.failure != nil
	return r.store(s.Object) != nil && (joined || failed) && s.launchedErr == nil && !s.launched.UserDataRemoved
}

// afterFailure brings a machine back that has just failed permanently, to remove what is stored for it.
func (r *Reconciler[M]) afterFailure(s *scope[M]) outcome.Outcome {
	if s.observed.failure != nil && !s.Deleting() && r.isUserDataDue(s) {
		return outcome.ContinueAfter(rereadDelay)
	}
	return outcome.Continue()
}

// removeUserData removes stored user data as soon as nothing needs it, and records that: nothing is asked for it afterwards until the
// object is deleted. What is wrong with that does not concern the instance, which continues as it is.
func (r *Reconciler[M]) removeUserData(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.observed.failure != nil || !r.isUserDataDue(s) {
		return outcome.Continue()
	}
	out, why := r.askRemoval(s)
	if why != nil {
		r.reportKept(s, why)
	}
	if !out.Finished() {
		return out
	}
	record := s.launched
	record.UserDataRemoved = true
	r.stored.forget(s.Key())
	return outcome.FromError(s.writeRecord(ctx, record, nil))
}

// endStored removes stored user data before the object is released, whatever the record says of it.
func (r *Reconciler[M]) endStored(_ context.Context, s *scope[M]) outcome.Outcome {
	if r.store(s.Object) == nil {
		return outcome.Continue()
	}
	out, why := r.askRemoval(s)
	if !out.Finished() && !s.observed.unsettled {
		s.observed.state = &explanation{driverv1.WaitingForDependantsReason, "Removing the stored user data"}
		if why != nil {
			s.observed.state = &explanation{why.reason, keptUserData + why.message}
		}
	}
	return out
}

// askRemoval continues once nothing is stored for the object; why explains what keeps it from that.
func (r *Reconciler[M]) askRemoval(s *scope[M]) (outcome.Outcome, *explanation) {
	handle := driver.Handle{Scope: s.handle.Scope, OwnerUID: s.handle.OwnerUID, Owner: s.handle.Owner}
	answer, answered := r.removals.Take(s.Key(), handle)
	switch {
	case answered && answer.Err == nil:
		r.removalBackoff.forget(s.Key())
		return outcome.Continue(), nil
	case answered:
		return outcome.WaitFor(r.removalBackoff.fail(s.Key(), answer.Err)), explainStored(answer.Err)
	}
	if wait, err := r.removalBackoff.remaining(s.Key()); wait > 0 {
		return outcome.WaitFor(wait), explainStored(err)
	}
	pending := r.removals.Ask(s.Key(), handle)
	if pending.Throttled != nil {
		return outcome.WaitFor(answerLate), explainStored(pending.Throttled)
	}
	var before *explanation // It holds until the answer is there.
	if err := r.removalBackoff.latest(s.Key()); err != nil {
		before = explainStored(err)
	}
	if wait := pending.Since.Add(answerDue).Sub(s.Now); wait > 0 {
		s.observed.unsettled = s.observed.unsettled || s.Deleting()
		return outcome.WaitFor(wait), before
	}
	return outcome.WaitFor(answerLate), before
}

// keptUserData begins the message about stored user data that cannot be removed.
const keptUserData = "The stored user data cannot be removed: "

// reportRemoved takes that back of a machine that has failed, whose Ready nothing else rewrites.
func (s *scope[M]) reportRemoved() {
	status := s.Object.CommonStatus()
	ready := meta.FindStatusCondition(status.Conditions, driverv1.ReadyCondition)
	if ready != nil && strings.Contains(ready.Message, keptUserData) {
		s.observed.state = failureOf(status)
	}
}

// failureOf is why a machine has failed permanently.
func failureOf(status *driverv1.MachineStatus) *explanation {
	return &explanation{*status.FailureReason, ptr.Deref(status.FailureMessage, "")}
}

// reportKept adds to the condition Ready, which stays what it is, that stored user data cannot be removed.
func (r *Reconciler[M]) reportKept(s *scope[M], why *explanation) {
	kept := keptUserData + why.message
	status := s.Object.CommonStatus()
	if ready := meta.FindStatusCondition(status.Conditions, driverv1.ReadyCondition); ready == nil || !strings.Contains(ready.Message, kept) {
		s.events.Warning(userDataKeptEvent, "RemoveUserData", "%s", kept)
	}
	state := s.observed.state
	if state == nil && status.HasFailed() {
		state = failureOf(status)
	}
	if state != nil {
		s.observed.state = &explanation{state.reason, strings.TrimPrefix(withoutStopText(state.message)+". "+kept, ". ")}
	}
}

// removing is how many machines are removed the user data of at a time.
const removing = 8

// removeAll is the call of a batch: a few at a time, and no longer for all of them than for any call.
func (r *Reconciler[M]) removeAll(ctx context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[struct{}] {
	answers := driver.Failed[struct{}](len(handles), notAnswered("RemoveUserData"))
	store, ok := r.Driver.(driver.UserDataStore[M])
	if !ok {
		return driver.Failed[struct{}](len(handles), errors.New("the driver stores no user data"))
	}
	ctx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	turns := make(chan struct{}, removing)
	var wait sync.WaitGroup
	for n := range handles {
		turns <- struct{}{}
		wait.Go(func() {
			defer func() { <-turns }()
			answers[n].Err = driver.Recover(ctx, "RemoveUserData", func() error {
				return r.limiter.Do(ctx, r.cloud.LimitScope(in), driver.CallStore, func(ctx context.Context) error {
					return store.RemoveUserData(ctx, in, handles[n])
				})
			})
		})
	}
	wait.Wait()
	return answers
}
