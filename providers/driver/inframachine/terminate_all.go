package inframachine

import (
	"context"
	"slices"
	"time"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/batch"
)

// termination is the answer to the request to terminate an instance.
type termination struct {
	// instance as it is now known: Terminating if the cloud has accepted the request.
	instance driver.Instance
	// accepted is true if the cloud was asked and has accepted it; else the instance was terminated, or terminating, before.
	accepted bool
}

// terminateAll terminates the instances of many machines: of those that carry the mark of their handle in the cloud itself, the
// ones that are not terminating already. It is the call of a batch.
func (r *Reconciler[M]) terminateAll(ctx context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[termination] {
	answers := make([]driver.Answer[termination], len(handles))
	var own []driver.Handle
	var place []int // in handles, of each of own
	handles = slices.Clone(handles)
	for i := range handles {
		handles[i].Ending = true
	}
	for i, seen := range r.lookAt(ctx, in, handles) {
		state := seen.Value.State
		switch {
		case seen.Err != nil:
			answers[i].Err = seen.Err
		case seen.Value.ProviderID == "" && (hasNotRun(state) || !handles[i].Owns(seen.Value)):
			answers[i].Err = nothingToTerminate(state)
		case !handles[i].Owns(seen.Value) && state != driverv1.InstanceTerminated:
			answers[i].Err = r.foreign(handles[i], seen.Value)
		case hasEnded(state):
			answers[i].Value.instance = seen.Value
		default:
			answers[i].Value.instance = seen.Value
			handle := handles[i]
			handle.ProviderID, handle.Incarnation = seen.Value.ProviderID, seen.Value.Incarnation
			own, place = append(own, handle), append(place, i)
		}
	}
	if len(own) == 0 {
		return answers
	}
	for n, err := range r.endInstances(ctx, in, own) {
		answer := &answers[place[n]]
		if driver.IsNotFound(err) && own[n].ProviderID == "" {
			err = nothingToTerminate(driverv1.InstancePending) // It may come to be: only Observe knows.
		}
		answer.Err = err
		answer.Value.instance.State, answer.Value.accepted = driverv1.InstanceTerminating, true
	}
	return answers
}

// nothingToTerminate is the error of a launch that the cloud has accepted and that shows no certain instance.
func nothingToTerminate(state driverv1.InstanceState) error {
	if hasNotRun(state) {
		return driver.NewNotFoundError("Observe", "", errors.New("the launch has failed and there is no instance"))
	}
	return driver.NewRefusedError("Observe", "", errors.New("the launch is under way, and there is no instance yet"))
}

// deleteInstances asks the cloud to terminate instances, and waits no longer than for any call. It has one error, or nil, for each handle.
func (r *Reconciler[M]) deleteInstances(ctx context.Context, in driver.Scope, handles []driver.Handle) []error {
	ctx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	errs := r.cloud.Delete(ctx, in, handles)
	for len(errs) < len(handles) {
		errs = append(errs, notAnswered("Delete"))
	}
	return errs[:len(handles)]
}

// notAnswered is the error of a handle about which the driver, contrary to its contract, gives no answer: that is no success.
func notAnswered(operation string) error {
	return driver.NewUnknownError(operation, "", errors.New("the driver gave no answer"))
}

// lookAt reads instances from the cloud itself, and waits no longer than for any call. It has one answer for each handle.
func (r *Reconciler[M]) lookAt(ctx context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	ctx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	answers := r.cloud.Observe(ctx, in, handles)
	for len(answers) < len(handles) {
		answers = append(answers, driver.Answer[driver.Instance]{Err: notAnswered("Observe")})
	}
	return answers[:len(handles)]
}

// cleanUpAll is the call of a batch.
func (r *Reconciler[M]) cleanUpAll(ctx context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	ctx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	return r.cloud.Cleanup(ctx, in, handles)
}

// Waits for the answer of a batch. Normally it comes before the first one is over, and nothing is written meanwhile.
const (
	answerDue  = 5 * time.Second
	answerLate = 10 * time.Second
)

// awaitAnswer waits for the answer of a batch, which enqueues the object. asked explains what was requested.
func (r *Reconciler[M]) awaitAnswer(s *scope[M], pending batch.Pending, asked *explanation) outcome.Outcome {
	if pending.Throttled != nil {
		s.observed.state = explainDeletion(pending.Throttled)
		return outcome.WaitFor(answerLate)
	}
	if wait := pending.Since.Add(answerDue).Sub(s.Now); wait > 0 {
		s.observed.unsettled = true
		return outcome.WaitFor(wait)
	}
	s.observed.state = &explanation{asked.reason, asked.message + ". Waiting for the answer of the cloud"}
	return outcome.WaitFor(answerLate)
}
