package machine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/contracts/inframachine"
	"millwright.dev/core/external"
)

// creationGrace is how long after the creation of a Machine its MachineSet is expected to create what the Machine
// refers to: Machines are created first. Until then a missing object is not reported as a wrong reference, unless it has
// been observed.
const creationGrace = 10 * time.Second

// creationSettling is how long after its creation a Machine is not reported whose objects do not exist yet: normally they do a
// moment later, and a condition in between would be one more write for each Machine.
const creationSettling = 2 * time.Second

// observe reads the object of a reference and records why it cannot be used.
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

// youth is how long an object may still be missing, and for how much of that nothing is reported. Where this process's clock is
// behind the API server's, which sets the creation time, it counts from when it has reported itself that it waits: at once.
func (s *scope) youth(conditionType string) (rest, silent time.Duration) {
	if created := s.Original.CreationTimestamp; !created.After(s.Now) {
		rest = created.Add(creationGrace).Sub(s.Now)
		if len(s.Original.Status.Conditions) == 0 {
			silent = rest - creationGrace + creationSettling
		}
		return rest, silent
	}
	reported := meta.FindStatusCondition(s.Original.Status.Conditions, conditionType)
	switch {
	case reported == nil:
		return creationGrace, 0
	case reported.Reason == BeingCreatedReason:
		return min(reported.LastTransitionTime.Add(creationGrace).Sub(s.Now), creationGrace), 0
	}
	return 0, 0
}

// observeOwned reads the object of a reference and makes the Machine its controlling owner where it is not yet.
func (r *Reconciler) observeOwned(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	if end := r.observe(ctx, s, reference); !end.Finished() {
		return end
	}
	if err := external.Own(ctx, r.Client, r.APIReader, reference.object, s.Object, kindMachine, s.Original.Spec.ClusterName); err != nil {
		// An object with another controlling owner does not concern the Machine, and one that a race was lost for is read again.
		reference.object = external.Object{}
		return reference.failed(err)
	}
	reference.own = true
	return outcome.Continue()
}

// observeLeaving reads the object of a reference of a Machine that is being deleted, and adopts nothing any more. An object with
// another controlling owner counts as missing, but for one of an export.
func (r *Reconciler) observeLeaving(ctx context.Context, s *scope, reference *reference) outcome.Outcome {
	end := r.observe(ctx, s, reference)
	if !reference.found() {
		return end
	}
	err := external.Foreign(reference.object, s.Object, kindMachine)
	restored := s.isRestored(reference, err)
	if err != nil && !restored {
		reference.object, reference.err = external.Object{}, err
		return outcome.Continue()
	}
	reference.own = restored || metav1.IsControlledBy(reference.object, s.Object)
	return end
}

// isRestored reports whether an infrastructure object, whose controller is an earlier Machine of the same name, has the instance of the
// Machine: both were created again from an export, with the provider ID in both, and the owner reference has the UID from then.
func (s *scope) isRestored(reference *reference, foreign error) bool {
	var owned *external.OwnedElsewhereError
	if reference != &s.infrastructure || !errors.As(foreign, &owned) || !owned.Namesake || s.Original.Spec.ProviderID == "" {
		return false
	}
	id, err := inframachine.At(reference.object.Contract).ProviderID(reference.object.Unstructured)
	return err == nil && id == s.Original.Spec.ProviderID
}

// foreign reports whether something else controls the object of the reference.
func (r *reference) foreign() bool { return elsewhere(r.err) }

// failed records why the object cannot be used. What an event will end is waited for, the rest is a failure.
func (r *reference) failed(err error) outcome.Outcome {
	if persist.LostRace(err) {
		// A lost race means nothing about the object.
		return outcome.FromError(err)
	}
	if persist.Denied(err) {
		// The code of a denial may be that of an object that does not exist: only its words count.
		r.err = errors.New(err.Error())
		return outcome.FromError(err)
	}
	r.err = err
	if external.Expected(err) {
		return outcome.Wait()
	}
	return outcome.FromError(err)
}
