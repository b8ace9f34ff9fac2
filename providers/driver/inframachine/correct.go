package inframachine

import "context"

// correctRecord takes times in the future out of the launch record, once and for good: a wait that began at the present whenever
// it is looked at would never end.
func (r *Reconciler[M]) correctRecord(ctx context.Context, s *scope[M]) outcome {
	record, changed := s.launched.corrected(s.now)
	if !changed {
		return proceed()
	}
	if err := r.writeRecord(ctx, s, record); err != nil {
		return failed(err)
	}
	return proceed()
}
