package inframachine

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
)

// observe takes the state of the instance from the inventory and assesses it.
func (r *Reconciler[M]) observe(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.launched.Failed != "" && s.mayClose() {
		return r.closeAttempt(ctx, s)
	}
	status := s.Object.CommonStatus()
	s.view = r.inventory.Track(s.Key(), s.handle, !status.IsProvisioned())
	s.dropEarlier()
	if s.view.Known && !s.handle.Owns(s.view.Instance) {
		if out := r.takeBack(ctx, s, s.view.Instance); !out.Finished() {
			return out
		}
	}
	a := assess(r.observation(s), s.Now)
	if a.confirm || s.mayBeMisnamed() {
		var out outcome.Outcome
		if a, out = r.confirmAbsence(ctx, s); !out.Finished() {
			return out
		}
	}
	if a.relaunch {
		return r.launchFailedLate(ctx, s, s.view.Instance)
	}
	if a.failure {
		s.observed.failure = a.why
		r.inventory.Forget(s.Key())
	} else {
		s.observed.state = r.withOthers(s, a.why)
		r.inventory.Track(s.Key(), s.handle, a.inTransition)
	}
	if s.view.Known {
		s.observed.instance = &s.view.Instance
	}
	if a.after > 0 {
		return outcome.ContinueAfter(a.after)
	}
	return outcome.Continue()
}

// ensureFinalizer adds the finalizer to an object that came with a provider ID: moved here, restored from
// a backup, or created manually for an instance that exists. The record keeps the UID that such an instance is marked with.
func (r *Reconciler[M]) ensureFinalizer(ctx context.Context, s *scope[M]) outcome.Outcome {
	if controllerutil.ContainsFinalizer(s.Object, Finalizer) {
		return outcome.Continue()
	}
	if s.launchedErr != nil {
		return outcome.FromError(s.EnsureFinalizer(ctx, Finalizer))
	}
	return outcome.FromError(s.writeRecord(ctx, s.launched, nil))
}

// holdRecorded adds the finalizer to an object that came with a launch record and without it. From such a record alone there may be an
// instance, or parts of one, whatever becomes of the launch.
func (r *Reconciler[M]) holdRecorded(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.launched.outstanding() {
		return outcome.FromError(s.EnsureFinalizer(ctx, Finalizer))
	}
	return outcome.Continue()
}

// observation gathers what assess needs.
func (r *Reconciler[M]) observation(s *scope[M]) observation {
	return observation{
		view:          s.view,
		asOf:          s.view.ListedAt,
		launchedAt:    s.launchedAt(),
		provisioned:   s.Object.CommonStatus().IsProvisioned(),
		statusLost:    s.launched.LastCall == nil || s.launched.UID != s.Object.GetUID(),
		launchTimeout: s.launchTimeout(),
		grace:         r.graceOf(s),
	}
}

// confirmAbsence asks the cloud itself about an instance that is not listed: a list alone does not make a machine
// fail.
func (r *Reconciler[M]) confirmAbsence(ctx context.Context, s *scope[M]) (assessment, outcome.Outcome) {
	if wait, latest := r.backoff.remaining(s.Key()); wait > 0 {
		if misnamedOf(latest) != nil {
			s.observed.state = explain(latest)
		}
		return assessment{}, outcome.WaitFor(wait)
	}
	grace := r.graceLeft(s, s.Now)
	if out := r.takeTurn(ctx, s); !out.Finished() {
		return assessment{}, out
	}
	instance, err := r.askCloud(ctx, s)
	switch {
	case driver.IsNotFound(err) && grace > 0:
		s.observed.state = assessAbsent(r.observation(s), grace).why
		return assessment{}, outcome.WaitFor(min(grace, r.backoff.fail(s.Key(), err)))
	case driver.IsNotFound(err):
		s.observed.missing = true
		return vanished(), outcome.Continue()
	case err != nil:
		return assessment{}, outcome.WaitFor(r.backoff.fail(s.Key(), err))
	case instance.ProviderID == s.handle.ProviderID && !s.handle.Owns(instance):
		if out := r.takeBack(ctx, s, instance); !out.Finished() {
			return assessment{}, out
		}
	case !s.handle.Owns(instance):
		return assessment{}, r.isForeign(s, r.foreign(s.handle, instance))
	case instance.ProviderID != s.handle.ProviderID:
		return assessment{}, r.isMisnamed(s, instance)
	}
	r.backoff.forget(s.Key())
	r.inventory.Put(s.handle.Scope, instance)
	s.view.Instance, s.view.Known = instance, true
	seen := r.observation(s)
	seen.asOf = s.Now
	a := assessKnown(seen, s.Now)
	if a.after == 0 && !a.failure && !a.relaunch {
		a.after = r.askAgain() // No list has it.
	}
	return a, outcome.Continue()
}

// askAgain is when the cloud is asked again about an instance that it knows and no list has: should it vanish, no list shows
// that.
func (r *Reconciler[M]) askAgain() time.Duration {
	if r.traits.StrongReads {
		return r.Options.ListSlow
	}
	return r.Options.VisibilityGrace
}

// askCloud asks the cloud itself about the instance, and waits no longer than for any call.
func (r *Reconciler[M]) askCloud(ctx context.Context, s *scope[M]) (driver.Instance, error) {
	seen := r.lookAt(ctx, s.handle.Scope, []driver.Handle{s.handle})[0]
	return seen.Value, seen.Err
}
