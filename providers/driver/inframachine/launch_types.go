package inframachine

import (
	"context"
	"slices"
	"strings"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/shortage"
)

// refusedTypes are the fallback types that the cloud has refused permanently for a generation of an object, and the attempt that it has
// refused last.
type refusedTypes struct {
	generation int64
	names      []string
	attempt    int
}

// typesRefused returns the fallback types that the cloud has refused for the spec of the object.
func (r *Reconciler[M]) typesRefused(s *scope[M]) []string {
	if known := r.refused.get(s.Key()); known.generation == s.Object.GetGeneration() {
		return known.names
	}
	return nil
}

// leaveType leaves a fallback type out that the cloud refuses permanently, since it lacks something else that the spec asks for, and tries
// the other types: the spec is sound with its first one, as far as is known. left is false where the first choice was refused. An earlier
// call whose answer was lost may have taken effect: its instance is looked for first.
func (r *Reconciler[M]) leaveType(ctx context.Context, s *scope[M], err error) (out outcome.Outcome, left bool) {
	place := s.request.Placement
	if !driver.IsTerminal(err) || !isFallback(s.allowed, place) {
		return outcome.Continue(), false
	}
	// Unlike a lack of capacity, a permanent refusal does not prove that an earlier call with the token has created nothing: a list has to
	// show that.
	if s.uncertain && !r.isAbsent(s) {
		return r.launchFailed(ctx, s, &driver.Error{Class: driver.ClassRefused, Err: err}, s.launched), true
	}
	names := append(slices.Clone(r.typesRefused(s)), place.InstanceType)
	r.refused.set(s.Key(), refusedTypes{s.Object.GetGeneration(), names, s.launched.Attempt})
	s.observed.state = &explanation{driverv1.InvalidConfigurationReason,
		withoutStop(err) + ". " + leftOut(names) + ". Now the other types are tried"}
	s.events.Warning(launchFailedEvent, "Launch", "%s", s.observed.state.message)
	if err := s.writeRecord(ctx, s.launched.next(), nil); err != nil {
		return outcome.FromError(err), true
	}
	r.places.Withdraw(s.machine())
	return outcome.WaitFor(rereadDelay), true
}

// isLeft returns whether the attempt was refused permanently and left, which could not be recorded.
func (r *Reconciler[M]) isLeft(s *scope[M]) bool {
	known := r.refused.get(s.Key())
	return known.generation == s.Object.GetGeneration() && known.attempt == s.launched.Attempt &&
		slices.Contains(known.names, s.launched.InstanceType)
}

// isAbsent returns whether a list that is late enough shows no instance of a call whose answer was lost.
func (r *Reconciler[M]) isAbsent(s *scope[M]) bool {
	return s.launched.FirstCall == nil || !s.view.ListedAt.Before(s.launched.FirstCall.Add(r.grace(s)))
}

// explainHeld explains a failed launch, and which types are not tried any more.
func (r *Reconciler[M]) explainHeld(s *scope[M], err error) *explanation {
	why := explainLaunch(err)
	if names := r.typesRefused(s); len(names) > 0 && shortage.IsShortage(err) {
		why.message += ". " + leftOut(names)
	}
	return why
}

// isFallback returns whether the place is among the candidates only with a type that is not their first choice.
func isFallback(candidates []driver.Candidate, place driver.Placement) bool {
	known := false
	for _, c := range candidates {
		if c.InstanceType == place.InstanceType {
			if c.Rank == 0 {
				return false
			}
			known = true
		}
	}
	return known && slices.ContainsFunc(candidates, func(c driver.Candidate) bool { return c.Rank == 0 })
}

// withoutTypes are the candidates of other types; all, if there are none.
func withoutTypes(candidates []driver.Candidate, names []string) []driver.Candidate {
	refused := func(c driver.Candidate) bool { return slices.Contains(names, c.InstanceType) }
	if left := slices.DeleteFunc(slices.Clone(candidates), refused); len(left) > 0 {
		return left
	}
	return candidates
}

// leftOut reports which types are not tried any more, and what to do.
func leftOut(names []string) string {
	return "Left out, since the cloud refuses this spec with it: the fallback type " + strings.Join(names, ", ") +
		"; replace the Machine by one without it, or without what it does not support"
}
