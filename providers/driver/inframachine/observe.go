package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// observe takes the state of the instance from the inventory and judges it.
func (r *Reconciler[M]) observe(ctx context.Context, s *scope[M]) outcome {
	status := s.obj.CommonStatus()
	s.view = r.Inventory.Track(s.key, s.handle, !status.IsProvisioned())
	if s.view.Known && !s.handle.Owns(s.view.Instance) {
		return r.isForeign(s, r.foreign(s.handle, s.view.Instance))
	}
	v := judge(r.sighting(s), s.now)
	if v.confirm || s.mayBeMisnamed() {
		var out outcome
		if v, out = r.confirmAbsence(ctx, s); !out.proceed {
			return out
		}
	}
	if v.relaunch {
		s.facts.observed = &s.view.Instance
		return r.refusedAfterLaunch(ctx, s, s.view.Instance)
	}
	if v.failure {
		s.facts.failure = v.why
		r.Inventory.Forget(s.key)
	} else {
		s.facts.standing = r.tellOthers(s, v.why)
		r.Inventory.Track(s.key, s.handle, v.inTransition)
	}
	if s.view.Known {
		s.facts.observed = &s.view.Instance
	}
	return outcome{after: v.after}
}

// keepFinalizer adds the finalizer to an object that came with a provider ID: moved here, restored from
// a backup, or made by hand for an instance that exists. The record keeps the UID that such an instance is marked with.
func (r *Reconciler[M]) keepFinalizer(ctx context.Context, s *scope[M]) outcome {
	if controllerutil.ContainsFinalizer(s.obj, Finalizer) {
		return proceed()
	}
	base, ok := s.obj.DeepCopyObject().(client.Object)
	if !ok {
		return failed(errors.Errorf("%s is not an object", r.Kind))
	}
	if s.launchedErr == nil {
		if err := r.writeRecord(ctx, s, s.launched); err != nil {
			return failed(err)
		}
		return proceed()
	}
	controllerutil.AddFinalizer(s.obj, Finalizer)
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, s.obj, patch); err != nil {
		return failed(errors.Wrapf(err, "adding the finalizer of %s %s", r.Kind, s.key))
	}
	return proceed()
}

// sighting gathers what judge needs.
func (r *Reconciler[M]) sighting(s *scope[M]) sighting {
	timeout := driverv1.DefaultLaunchTimeoutSeconds
	if t := s.obj.CommonSpec().LaunchTimeoutSeconds; t != nil {
		timeout = *t
	}
	return sighting{
		view:          s.view,
		launchedAt:    s.launchedAt(),
		provisioned:   s.obj.CommonStatus().IsProvisioned(),
		statusLost:    s.launched.LastCall == nil || s.launched.UID != s.obj.GetUID(),
		launchTimeout: time.Duration(timeout) * time.Second,
		grace:         r.Options.VisibilityGrace,
	}
}

// launchedAt is when the launch was last asked for. An object whose record was lost is as old as
// itself.
func (s *scope[M]) launchedAt() time.Time {
	if s.launched.LastCall != nil {
		return *s.launched.LastCall
	}
	return s.obj.GetCreationTimestamp().Time
}

// confirmAbsence asks the cloud itself about an instance that the lists do not hold: a machine is not
// declared dead on the word of a list.
func (r *Reconciler[M]) confirmAbsence(ctx context.Context, s *scope[M]) (verdict, outcome) {
	if wait, latest := r.backoff.remaining(s.key); wait > 0 {
		if misnamedOf(latest) != nil {
			s.facts.standing = explain(latest)
		}
		return verdict{}, untilDeadline(wait)
	}
	grace := s.launchedAt().Add(r.Options.VisibilityGrace).Sub(s.now)
	if out := r.takeTurn(ctx, s); !out.proceed {
		return verdict{}, out
	}
	instance, err := r.askCloud(ctx, s)
	switch {
	case driver.IsNotFound(err) && grace > 0:
		s.facts.standing = judgeAbsent(r.sighting(s), grace).why
		return verdict{}, untilDeadline(min(grace, r.backoff.fail(s.key, err)))
	case driver.IsNotFound(err):
		s.facts.missing = true
		return vanished(), proceed()
	case err != nil:
		return verdict{}, untilDeadline(r.backoff.fail(s.key, err))
	case !s.handle.Owns(instance):
		return verdict{}, r.isForeign(s, r.foreign(s.handle, instance))
	case instance.ProviderID != s.handle.ProviderID:
		return verdict{}, r.isMisnamed(s, instance)
	}
	r.backoff.forget(s.key)
	r.Inventory.Put(s.handle.Scope, instance)
	s.view.Instance, s.view.Known = instance, true
	v := judgeKnown(r.sighting(s), s.now)
	if v.after == 0 && !v.failure && !v.relaunch {
		v.after = r.Options.VisibilityGrace // No list speaks of it: ask again.
	}
	return v, proceed()
}

// askCloud asks the cloud itself about the instance, and waits no longer than for any call.
func (r *Reconciler[M]) askCloud(ctx context.Context, s *scope[M]) (driver.Instance, error) {
	seen := r.lookAt(ctx, s.handle.Scope, []driver.Handle{s.handle})[0]
	return seen.Value, seen.Err
}
