package inframachine

import (
	"context"
	"time"

	"millwright.dev/contracts/controller/outcome"
)

// turnRetry is when an object asks again for its turn if it was not woken; spread by a fifth.
const turnRetry = 5 * time.Second

// takeTurn lets the object call the cloud until its reconcile ends, or has it come back: a scope of the cloud that hangs must not
// take all workers. Its conditions stay as they are: the objects that call report what is wrong with the scope.
func (r *Reconciler[M]) takeTurn(_ context.Context, s *scope[M]) outcome.Outcome {
	if s.leaveTurn != nil {
		return outcome.Continue()
	}
	leave, entered := r.turns.EnterFor(s.handle.Scope, s.Key())
	if !entered {
		return outcome.WaitFor(turnRetry + r.Options.Random(turnRetry/5))
	}
	s.leaveTurn = leave
	return outcome.Continue()
}

// endTurn is called when the reconcile ends.
func (s *scope[M]) endTurn() {
	if s.leaveTurn != nil {
		s.leaveTurn()
	}
}
