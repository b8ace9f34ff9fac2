package inframachine

import (
	"context"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// resolveConflict finds out what has the name that the instance was to get. It is the instance itself, if the answer of an earlier call was
// lost; something of an earlier attempt that is still being cleaned up; or one with another owner.
func (r *Reconciler[M]) resolveConflict(ctx context.Context, s *scope[M], conflict error) outcome.Outcome {
	instance, err := r.askCloud(ctx, s)
	switch {
	case err == nil && (s.handle.Owns(instance) || instance.ProviderID == "" && instance.Token == s.handle.Token):
		r.backoff.forget(s.Key())
		if instance.ProviderID != "" {
			r.inventory.Put(s.handle.Scope, instance)
		}
		if out := r.recordLaunched(ctx, s, instance); !out.Finished() || s.handle.ProviderID != "" {
			return out
		}
		return r.awaitName(s)
	case err == nil:
		return r.leaveName(ctx, s, &nameTakenError{name: s.handle.Name, by: instance.ID, mark: r.cloud.Mark(s.handle)})
	case !driver.IsNotFound(err):
		return r.createFailed(ctx, s, driver.WithoutEffect(err))
	}
	return r.cleanUpConflict(ctx, s, conflict)
}

// isNamesake returns whether the instance has nothing to do with the launch but its name: then there is none of this launch,
// since two cannot have the same name. One that was launched with the token and lacks the mark is another case: see isForeign.
func (s *scope[M]) isNamesake(i driver.Instance) bool {
	return s.handle.ProviderID == "" && s.handle.Name != "" && i.Token != s.handle.Token && !s.handle.Owns(i)
}

// awaitName waits for an instance that the cloud is creating under the name, by an operation whose name got lost. The call is
// repeated until the instance is certain, or has failed.
func (r *Reconciler[M]) awaitName(s *scope[M]) outcome.Outcome {
	if first := s.launched.FirstCall; first != nil && !s.Now.Before(first.Add(s.launchTimeout())) {
		s.observed.failure = &explanation{driverv1.InstanceLaunchTimeoutReason,
			"The cloud accepted the launch and did not finish it within " + s.launchTimeout().String()}
		return outcome.Wait()
	}
	s.observed.state = &explanation{driverv1.InstancePendingReason, "The cloud has accepted the launch; waiting for the instance " + s.handle.Name}
	return outcome.WaitFor(r.followAfter(s))
}

// cleanUpConflict ends what has the name and is no instance: a disk of an earlier attempt, for example. Then the call is repeated.
func (r *Reconciler[M]) cleanUpConflict(ctx context.Context, s *scope[M], conflict error) outcome.Outcome {
	out := r.awaitDependants(ctx, s)
	if out.Finished() {
		return r.createFailed(ctx, s, conflict)
	}
	if s.observed.state != nil {
		s.observed.state = &explanation{driverv1.CleaningUpLaunchReason, withoutStop(conflict) + ". " + s.observed.state.message}
	}
	return out
}
