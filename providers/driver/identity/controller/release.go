package controller

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
)

// hold adds the finalizer; it is written before the status by which the identity can be used.
func (r *Reconciler[I]) hold(_ context.Context, s *scope[I]) outcome.Outcome {
	if !s.Deleting() {
		controllerutil.AddFinalizer(s.Object, Finalizer)
	}
	return outcome.Continue()
}

// release removes the finalizer of an identity that is being deleted once no machine names it: neither in the cache, nor for the
// API server itself. Until then the identity works, since the instances are ended with it.
func (r *Reconciler[I]) release(ctx context.Context, s *scope[I]) outcome.Outcome {
	if !s.Deleting() {
		return outcome.Continue()
	}
	found, err := r.Machines.Cached(ctx, s.Object.GetName())
	if err == nil && found.Count == 0 {
		found, err = r.Machines.Live(ctx, r.APIReader, s.Object.GetName())
	}
	if err != nil || found.Count > 0 {
		s.users = &users{Found: found, err: err}
		return outcome.ContinueAfter(openEvery) // The end of a machine enqueues the identity, too.
	}
	if err := s.RemoveFinalizer(ctx, Finalizer); err != nil {
		return outcome.FromError(err)
	}
	r.forget(s.Object.GetName())
	return outcome.Wait()
}
