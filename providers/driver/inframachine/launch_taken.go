package inframachine

import (
	"context"
	"slices"
	"time"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// leaveName leaves the name to another owner. Where names are by failure domain, the next attempt goes to one where the name may be free,
// if the spec allows one; with none it waits for the name, and then tries all of them again.
func (r *Reconciler[M]) leaveName(ctx context.Context, s *scope[M], taken *nameTakenError) outcome.Outcome {
	err := driver.NewTerminalError("Create", "", taken)
	if !r.traits.NamesByDomain || s.mayArrive(r.grace(s)) {
		return r.isForeign(s, err)
	}
	known := append(slices.Clone(r.taken.get(s.Key())), s.request.Placement.FailureDomain)
	if !isFree(s.allowed, known) {
		r.taken.forget(s.Key())
		return r.isForeign(s, err)
	}
	r.taken.set(s.Key(), known)
	s.observed.state = &explanation{driverv1.ForeignInstanceReason, taken.Error() + ". Now another failure domain is tried"}
	if err := s.writeRecord(ctx, s.launched.next(), nil); err != nil {
		return outcome.FromError(err)
	}
	r.places.Withdraw(s.machine())
	return outcome.WaitFor(rereadDelay)
}

// mayArrive returns whether an earlier call of the attempt, whose answer was lost, may still take effect: once another owner's instance is
// gone, for example.
func (s *scope[M]) mayArrive(grace time.Duration) bool {
	return s.uncertain && s.launched.FirstCall != nil && s.Now.Before(s.launched.FirstCall.Add(grace))
}

// isFree returns whether one of the candidates is in none of the failure domains.
func isFree(candidates []driver.Candidate, taken []string) bool {
	return slices.ContainsFunc(candidates, func(c driver.Candidate) bool { return !slices.Contains(taken, c.FailureDomain) })
}

// untaken are the candidates outside of the failure domains; all, if none is.
func untaken(candidates []driver.Candidate, taken []string) []driver.Candidate {
	if !isFree(candidates, taken) {
		return candidates
	}
	return slices.DeleteFunc(slices.Clone(candidates), func(c driver.Candidate) bool { return slices.Contains(taken, c.FailureDomain) })
}

// nameTakenError means that the name of the instance is taken by one that does not carry the mark of the object.
type nameTakenError struct{ name, by, mark string }

func (e *nameTakenError) Error() string {
	return "The name " + e.name + " is taken by " + e.by + ", which is not marked as this object's and is left alone. " +
		"Delete that in the cloud, or replace the Machine by one of another name. To let the object have it, with the right to terminate it, mark it in the cloud: " + e.mark
}
