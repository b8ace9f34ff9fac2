package machine

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"millwright.dev/core/external"
	"millwright.dev/core/outcome"
)

// creationGrace is how long after the birth of a Machine its MachineSet is expected to create what the Machine
// refers to: Machines are created first. Until then a missing object is not reported as a wrong reference.
const creationGrace = 10 * time.Second

// observe reads the object behind a reference and remembers what stands in the way.
func (r *Reconciler) observe(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	if !reference.ref.IsDefined() {
		return outcome.Continue()
	}
	reference.object, reference.err = r.Kinds.Get(ctx, reference.ref, s.original.Namespace, s.request())
	if reference.err == nil {
		return outcome.Continue()
	}
	if apierrors.IsNotFound(reference.err) && s.machineSet != nil && !s.deleting() {
		if rest := s.original.CreationTimestamp.Add(creationGrace).Sub(s.now); rest > 0 {
			reference.beingMade = true
			return outcome.WaitFor(rest)
		}
	}
	return reference.failed(reference.err)
}

// observeOwned reads the object behind a reference and makes the Machine its controller where it is not yet.
func (r *Reconciler) observeOwned(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	if end := r.observe(ctx, s, reference); !end.Finished() {
		return end
	}
	if err := external.Own(ctx, r.Client, reference.object, s.machine, kindMachine, s.original.Spec.ClusterName); err != nil {
		return reference.failed(err)
	}
	return outcome.Continue()
}

// failed remembers why the object cannot be used. What an event will end is waited for, the rest is a failure.
func (r *reference) failed(err error) outcome.Outcome {
	if apierrors.IsConflict(err) {
		// A race that was lost says nothing about the object.
		return outcome.Fail(err)
	}
	r.err = err
	if external.Expected(err) {
		return outcome.Wait()
	}
	return outcome.Fail(err)
}
