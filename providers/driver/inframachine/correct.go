package inframachine

import (
	"context"

	"millwright.dev/contracts/controller/outcome"
)

// correctRecord takes times in the future out of the launch record, once and permanently: a wait that began at the present whenever
// it is looked at would never end.
func (r *Reconciler[M]) correctRecord(ctx context.Context, s *scope[M]) outcome.Outcome {
	record, changed := s.launched.corrected(s.Now)
	if !changed {
		return outcome.Continue()
	}
	if err := s.writeRecord(ctx, record, nil); err != nil {
		return outcome.FromError(err)
	}
	return outcome.Continue()
}
