package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"millwright.dev/contracts/controller/wake"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/batch"
)

// termination is the answer to the request to end an instance.
type termination struct {
	// instance as it is now known: Terminating if the cloud has accepted the request.
	instance driver.Instance
	// accepted says that the cloud was asked and has accepted it; else the instance had ended, or was ending, before.
	accepted bool
}

// endAll ends the instances of many machines: of those that the cloud itself says to carry the mark of their handle, the
// ones that are not ending already. It is the call of a batch.
func (r *Reconciler[M]) endAll(ctx context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[termination] {
	answers := make([]driver.Answer[termination], len(handles))
	var own []driver.Handle
	var place []int // in handles, of each of own
	for i, seen := range r.lookAt(ctx, in, handles) {
		state := seen.Value.State
		switch {
		case seen.Err != nil:
			answers[i].Err = seen.Err
		case !handles[i].Owns(seen.Value) && state != driverv1.InstanceTerminated:
			answers[i].Err = r.foreign(handles[i], seen.Value)
		case hasEnded(state):
			answers[i].Value.instance = seen.Value
		default:
			answers[i].Value.instance = seen.Value
			own, place = append(own, handles[i]), append(place, i)
		}
	}
	if len(own) == 0 {
		return answers
	}
	for n, err := range r.deleteInstances(ctx, in, own) {
		answer := &answers[place[n]]
		answer.Err = err
		answer.Value.instance.State, answer.Value.accepted = driverv1.InstanceTerminating, true
	}
	return answers
}

// deleteInstances asks the cloud to end instances, and waits no longer than for any call. It has one error, or nil, for each handle.
func (r *Reconciler[M]) deleteInstances(ctx context.Context, in driver.Scope, handles []driver.Handle) []error {
	ctx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	errs := r.Driver.Delete(ctx, in, handles)
	for len(errs) < len(handles) {
		errs = append(errs, notAnswered("Delete"))
	}
	return errs[:len(handles)]
}

// notAnswered is the error of a handle about which the driver, contrary to its contract, says nothing: that is no consent.
func notAnswered(operation string) error {
	return driver.NewUnknownError(operation, "", errors.New("the driver gave no answer"))
}

// lookAt reads instances from the cloud itself, and waits no longer than for any call. It has one answer for each handle.
func (r *Reconciler[M]) lookAt(ctx context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[driver.Instance] {
	ctx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	answers := r.Driver.Observe(ctx, in, handles)
	for len(answers) < len(handles) {
		answers = append(answers, driver.Answer[driver.Instance]{Err: notAnswered("Observe")})
	}
	return answers[:len(handles)]
}

// dependantsOfAll is the call of a batch.
func (r *Reconciler[M]) dependantsOfAll(ctx context.Context, in driver.Scope, handles []driver.Handle) []driver.Answer[[]string] {
	ctx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	return r.Driver.Dependants(ctx, in, handles)
}

// Waits for the answer of a batch. Normally it comes before the first one is over, and nothing is written meanwhile.
const (
	answerDue  = 2 * time.Second
	answerLate = 10 * time.Second
)

// awaitAnswer waits for the answer of a batch, which wakes the object. standing says what was asked for.
func (r *Reconciler[M]) awaitAnswer(s *scope[M], pending batch.Pending, standing *reasoned) outcome {
	if pending.Throttled != nil {
		s.facts.standing = explainDeletion(pending.Throttled)
		return untilDeadline(answerLate)
	}
	if wait := pending.Since.Add(answerDue).Sub(s.now); wait > 0 {
		s.facts.unsettled = true
		return untilDeadline(wait)
	}
	s.facts.standing = &reasoned{standing.reason, standing.message + ". Waiting for the answer of the cloud"}
	return untilDeadline(answerLate)
}

// withdraw takes back what was requested for an object and has not been sent: it is gone, paused or somebody else's.
func (r *Reconciler[M]) withdraw(key client.ObjectKey) {
	r.terminations.Forget(key)
	r.dependants.Forget(key)
}

// setUpBatches makes the batchers, which begin with the manager and wake objects through the returned source.
func (r *Reconciler[M]) setUpBatches(mgr ctrl.Manager) (source.Source, error) {
	waker, options := wake.New(), r.Options.Batch
	options.Clock = r.Clock
	options.Backoff = func(n int) time.Duration { return r.Options.Backoff(driver.ClassThrottle, n) }
	r.terminations = batch.New("terminate", r.endAll, waker, options)
	r.dependants = batch.New("dependants", r.dependantsOfAll, waker, options)
	for _, b := range []manager.Runnable{r.terminations, r.dependants} {
		if err := mgr.Add(b); err != nil {
			return nil, errors.Wrap(err, "adding the batches of deletions")
		}
	}
	return waker.Source(), nil
}
