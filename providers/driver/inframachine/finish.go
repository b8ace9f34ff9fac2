package inframachine

import (
	"context"
	"time"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// finish is what an instance lacked when the cloud granted it. Lists may show that for a while yet.
type finish struct {
	providerID, settings string
	at                   time.Time
}

// finish asks the cloud for what the instance lacks of what its spec wants, for as long as a list shows that it lacks it: nothing is
// persisted, so that a process that dies here repeats the call. The machine is not ready before. But its instance runs, so what a Node
// needs to be drained and removed does not wait for it.
func (r *Reconciler[M]) finish(ctx context.Context, s *scope[M]) outcome.Outcome {
	finisher, ok := r.Driver.(driver.Finisher[M])
	i := s.view.Instance
	if !ok || s.observed.failure != nil || !s.view.Known || !mayFinish(s.view.Listed, i.State) {
		return outcome.Continue()
	}
	lacking := finisher.Unfinished(s.Object, i)
	if lacking == "" {
		r.finished.forget(s.Key())
		return outcome.Continue()
	}
	if left := r.grantedFor(s); left > 0 {
		return outcome.ContinueAfter(left)
	}
	s.observed.unfinished = &explanation{driverv1.ConfiguringInstanceReason, lacking + ". Asking the cloud for it"}
	if wait, err := r.backoff.remaining(s.Key()); wait > 0 {
		s.observed.unfinished = explainUnfinished(lacking, err)
		return outcome.WaitFor(wait)
	}
	if out := r.takeTurn(ctx, s); !out.Finished() {
		return out
	}
	callCtx, cancel := context.WithTimeout(ctx, r.Options.CallTimeout)
	defer cancel()
	err := r.limiter.Do(callCtx, r.cloud.LimitScope(s.handle.Scope), driver.CallModify, func(ctx context.Context) error {
		return finisher.Finish(ctx, s.Object, i)
	})
	if err != nil {
		s.observed.unfinished = explainUnfinished(lacking, err)
		return outcome.WaitFor(r.backoff.fail(s.Key(), err))
	}
	r.backoff.forget(s.Key())
	s.observed.unfinished = nil
	r.finished.set(s.Key(), finish{providerID: i.ProviderID, settings: i.Settings, at: r.Clock.Now()})
	return outcome.ContinueAfter(r.grantedFor(s))
}

// mayFinish returns whether an instance can be asked something of. One that is starting is waited for until it is listed: before that, what
// belongs to it may not be known everywhere.
func mayFinish(listed bool, state driverv1.InstanceState) bool {
	return state == driverv1.InstanceRunning || listed && state == driverv1.InstancePending
}

// grantedFor is for how long yet it is believed that the cloud has granted what the instance is still shown to lack.
func (r *Reconciler[M]) grantedFor(s *scope[M]) time.Duration {
	granted := r.finished.get(s.Key())
	if granted.providerID != s.view.Instance.ProviderID || granted.settings != s.view.Instance.Settings {
		return 0
	}
	return granted.at.Add(r.Options.VisibilityGrace).Sub(s.Now)
}

// explainUnfinished explains what the instance lacks and why. The instance runs, so that the explanation of a launch does not always fit.
func explainUnfinished(lacking string, err error) *explanation {
	why := explain(err)
	switch driver.ClassOf(err) {
	case driver.ClassTerminal:
		why.message = withoutStop(err) + ". Retried slowly; replace the Machine by one with a spec that the cloud accepts"
	case driver.ClassNotFound:
		why = &explanation{driverv1.CloudErrorReason, withoutStop(err) + ". Retried with backoff"}
	}
	return &explanation{why.reason, lacking + ": " + why.message}
}
