package inframachine

import (
	"context"
	"fmt"
	"slices"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// checkPlace puts the recorded place into the request if it is allowed. The record can be forged, and what is allowed can
// change, so no call names another one, not even to repeat one whose answer was lost: the instance of such a call is looked for
// until its absence counts. Then, or if no answer is outstanding, a new attempt begins, which has no place yet.
func (r *Reconciler[M]) checkPlace(ctx context.Context, s *scope[M], allowed []driver.Candidate) outcome.Outcome {
	sameName := s.launched.Name == "" || s.launched.Name == s.request.Name
	recorded := func(c driver.Candidate) bool {
		sameType := s.launched.InstanceType == "" || c.InstanceType == s.launched.InstanceType
		return c.ID == s.launched.Placement && sameType && sameName
	}
	if i := slices.IndexFunc(allowed, recorded); i >= 0 && !r.isLeft(s) {
		s.request.Placement = allowed[i].Placement
		return outcome.Continue()
	}
	if s.launched.outstanding() && !r.isLeft(s) {
		instance, err := r.askCloud(ctx, s)
		if err == nil {
			r.backoff.forget(s.Key())
			if out := r.recordLaunched(ctx, s, instance); !out.Finished() || s.handle.ProviderID != "" {
				return out
			}
			return outcome.WaitFor(r.followAfter(s))
		}
		if !driver.IsNotFound(err) {
			return r.launchFailed(ctx, s, driver.WithoutEffect(err), s.launched)
		}
		if wait := r.graceLeft(s, s.Now); wait > 0 {
			s.observed.state = &explanation{driverv1.WaitingForLaunchOutcomeReason, fmt.Sprintf("The launch record names a call for %s, "+
				"which the spec and the Machine do not allow. Nothing is launched there: an instance of that call is looked for, and if "+
				"there is none, one is launched at an allowed place", s.launched.Placement)}
			return outcome.WaitFor(wait) // The inventory wakes the object if the instance shows up before.
		}
	}
	s.launched = s.launched.next()
	s.launched.Name = s.request.Name
	s.handle.Token, s.handle.Attempt, s.handle.Placement = s.launched.token(s.Key().String()), s.launched.Attempt, driver.Placement{}
	s.handle.Name = s.request.Name
	s.request.Token, s.request.Attempt = s.handle.Token, s.launched.Attempt
	return outcome.Continue()
}
