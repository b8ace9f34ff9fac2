package machine

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/core/external"
)

// creationGrace is how long after the birth of a Machine its MachineSet is expected to create what the Machine
// refers to: Machines are created first. Until then a missing object is not reported as a wrong reference, unless it has
// been there.
const creationGrace = 10 * time.Second

// creationSettling is how long after its birth nothing is said of a Machine whose objects do not exist yet: as a rule they
// do a moment later, and a condition in between would be a write more for each Machine.
const creationSettling = 2 * time.Second

// ReasonBeingCreated is said of an object that does not exist yet in that time. Another reason would look as if it had been
// there, also to another process.
const ReasonBeingCreated = "BeingCreated"

// observe reads the object behind a reference and remembers what stands in the way.
func (r *Reconciler) observe(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	if !reference.ref.IsDefined() {
		return outcome.Continue()
	}
	reference.object, reference.err = r.Kinds.Get(ctx, reference.ref, s.Original.Namespace, s.Request())
	if reference.err == nil {
		r.observations.add(s.Key(), s.Original.UID, reference.ref)
		return outcome.Continue()
	}
	conditionType, done := s.recorded(reference)
	reference.seen = r.observations.has(s.Key(), s.Original.UID, reference.ref) || s.existed(conditionType, done)
	if apierrors.IsNotFound(reference.err) && s.machineSet != nil && !s.Deleting() && !reference.seen {
		if rest, silent := s.youth(conditionType); rest > 0 {
			reference.beingCreated = true
			if silent > 0 {
				s.quiet = true
				return outcome.WaitFor(silent)
			}
			return outcome.WaitFor(rest)
		}
	}
	return reference.failed(reference.err)
}

// youth is how long an object may still be missing, and for how much of that nothing is said. Where this process's clock is
// behind the API server's, which says when the Machine was born, it goes by when it has said itself that it waits: at once.
func (s *scope) youth(conditionType string) (rest, silent time.Duration) {
	if born := s.Original.CreationTimestamp; !born.After(s.Now) {
		rest = born.Add(creationGrace).Sub(s.Now)
		if len(s.Original.Status.Conditions) == 0 {
			silent = rest - creationGrace + creationSettling
		}
		return rest, silent
	}
	said := meta.FindStatusCondition(s.Original.Status.Conditions, conditionType)
	switch {
	case said == nil:
		return creationGrace, 0
	case said.Reason == ReasonBeingCreated:
		return min(said.LastTransitionTime.Add(creationGrace).Sub(s.Now), creationGrace), 0
	}
	return 0, 0
}

// observeOwned reads the object behind a reference and makes the Machine its controller where it is not yet.
func (r *Reconciler) observeOwned(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	if end := r.observe(ctx, s, reference); !end.Finished() {
		return end
	}
	if err := external.Own(ctx, r.Client, r.APIReader, reference.object, s.Object, kindMachine, s.Original.Spec.ClusterName); err != nil {
		// Nothing of what is another's concerns the Machine, and who lost the race for it reads it again.
		reference.object = external.Object{}
		return reference.failed(err)
	}
	reference.own = true
	return outcome.Continue()
}

// observeLeaving reads the object behind a reference of a Machine that is being deleted, and adopts nothing any more. What
// something else controls counts as not there.
func (r *Reconciler) observeLeaving(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	end := r.observe(ctx, s, reference)
	if !reference.found() {
		return end
	}
	if err := external.Foreign(reference.object, s.Object, kindMachine); err != nil {
		reference.object, reference.err = external.Object{}, err
		return outcome.Continue()
	}
	reference.own = metav1.IsControlledBy(reference.object, s.Object)
	return end
}

// foreign says whether something else controls the object behind the reference.
func (r *reference) foreign() bool { return elsewhere(r.err) }

// failed remembers why the object cannot be used. What an event will end is waited for, the rest is a failure.
func (r *reference) failed(err error) outcome.Outcome {
	if apierrors.IsConflict(err) {
		// A race that was lost says nothing about the object.
		return outcome.FromError(err)
	}
	r.err = err
	if external.Expected(err) {
		return outcome.Wait()
	}
	return outcome.FromError(err)
}
