package inframachine

import (
	"time"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/batch"
)

// stoppingGrace is for how long an instance that stops is taken for one that is being terminated, once the cloud has accepted that.
const stoppingGrace = 5 * time.Minute

// recognizeTermination takes an instance that stops for one that is being terminated, if the cloud has accepted that a short while ago:
// some clouds show no difference, and each list would have it terminated again.
func (r *Reconciler[M]) recognizeTermination(s *scope[M]) {
	accepted := r.terminated.get(s.Key())
	if s.view.Known && s.view.Instance.State == driverv1.InstanceStopping && !accepted.IsZero() && s.Now.Before(accepted.Add(stoppingGrace)) {
		s.view.Instance.State = driverv1.InstanceTerminating
	}
}

// confirmTermination asks the cloud itself about an instance that is in no list.
func (r *Reconciler[M]) confirmTermination(s *scope[M]) outcome.Outcome {
	if r.isGone(s) {
		return outcome.Continue()
	}
	answer, out := r.look(s)
	switch {
	case !out.Finished():
		return out
	case driver.IsNotFound(answer.Err):
		return r.acceptLook(s, answer)
	case answer.Err != nil:
		return outcome.WaitFor(r.backoff.fail(s.Key(), answer.Err))
	case answer.Value.State != driverv1.InstanceTerminated:
		pending := driver.NewUnknownError("Observe", "", errors.Errorf("the instance is %s", answer.Value.State))
		return outcome.WaitFor(r.backoff.fail(s.Key(), pending))
	}
	r.backoff.forget(s.Key())
	s.view.Instance = answer.Value
	s.observed.instance = s.observedWhileEnding()
	return outcome.Continue()
}

// look reads an instance that is to end from the cloud itself, with those of others in one call. It does not continue while the answer is
// awaited, or a failure before is too recent.
func (r *Reconciler[M]) look(s *scope[M]) (batch.Answer[driver.Instance], outcome.Outcome) {
	handle := s.handle
	handle.Ending = true
	if answer, answered := r.operations.Take(s.Key(), handle); answered {
		return answer, outcome.Continue()
	}
	if wait, latest := r.backoff.remaining(s.Key()); wait > 0 {
		if s.observed.state == nil {
			s.observed.state = explainDeletion(latest)
		}
		return batch.Answer[driver.Instance]{}, outcome.WaitFor(wait)
	}
	asked := s.observed.state
	if asked == nil {
		asked = &explanation{driverv1.TerminatingInstanceReason, "Looking for the instance, to terminate it"}
	}
	return batch.Answer[driver.Instance]{}, r.awaitAnswer(s, r.operations.Ask(s.Key(), handle), asked)
}

// acceptLook accepts that there is no such instance, and remembers it if that counts.
func (r *Reconciler[M]) acceptLook(s *scope[M], answer batch.Answer[driver.Instance]) outcome.Outcome {
	out := r.acceptAbsence(s, answer.Err, answer.At)
	if s.observed.missing {
		r.gone.set(s.Key(), s.handle.ProviderID)
	}
	return out
}

// isGone returns whether it was accepted before that there is no such instance, which does not change: it is not looked for again.
func (r *Reconciler[M]) isGone(s *scope[M]) bool {
	gone := r.gone.get(s.Key())
	if gone == "" || gone != s.handle.ProviderID {
		return false
	}
	s.observed.missing, s.view.Known = true, false
	return true
}
