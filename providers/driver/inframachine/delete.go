package inframachine

import (
	"context"
	"strings"
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// checkFinalizer ends the work on an object that holds nothing in the cloud.
func (r *Reconciler[M]) checkFinalizer(_ context.Context, s *scope[M]) outcome {
	if controllerutil.ContainsFinalizer(s.obj, Finalizer) {
		return proceed()
	}
	s.released = true
	r.forget(s.key)
	return done()
}

// locate finds the instance. When a launch was asked for and its answer was lost, absence is believed
// only after the grace: an instance that is not listed yet would stay behind for ever.
func (r *Reconciler[M]) locate(ctx context.Context, s *scope[M]) outcome {
	if s.launchedErr != nil && s.handle.ProviderID == "" {
		s.facts.standing = &reasoned{driverv1.LaunchRecordUnreadableReason, s.launchedErr.Error() +
			". An instance may exist: restore the annotation, or end the instance and remove the finalizer " + Finalizer}
		return untilEvent()
	}
	if s.handle.ProviderID == "" && !s.launched.outstanding() && !r.takeOther(s) {
		if s.launched.Ended > 0 { // What was launched with those may be there still.
			if out := r.awaitDependants(ctx, s); !out.proceed {
				return out
			}
		}
		return r.release(ctx, s)
	}
	s.view = r.Inventory.Track(s.key, s.handle, false) // The steps that wait for a list say so.
	if s.view.Known || s.handle.ProviderID != "" {
		if s.handle.ProviderID == "" {
			s.handle.ProviderID = s.view.Instance.ProviderID
		}
		return proceed()
	}
	return r.locateByToken(ctx, s)
}

func (r *Reconciler[M]) locateByToken(ctx context.Context, s *scope[M]) outcome {
	s.facts.standing = &reasoned{driverv1.WaitingForLaunchOutcomeReason,
		"A launch was asked for and its answer was lost; looking for its instance"}
	r.Inventory.Track(s.key, s.handle, true)
	if wait, err := r.backoff.remaining(s.key); wait > 0 {
		if foreignOf(err) != nil {
			s.facts.standing = explainDeletion(err)
		}
		return untilDeadline(wait)
	}
	if out := r.takeTurn(ctx, s); !out.proceed {
		return out
	}
	instance, err := r.askCloud(ctx, s)
	switch {
	case err == nil && !s.handle.Owns(instance):
		return r.isForeign(s, r.foreign(s.handle, instance))
	case err == nil:
		r.backoff.forget(s.key)
		r.Inventory.Put(s.handle.Scope, instance)
		s.handle.ProviderID = instance.ProviderID
		s.view.Instance, s.view.Known = instance, true
		return proceed()
	case !driver.IsNotFound(err):
		s.facts.standing = explain(err)
		return untilDeadline(r.backoff.fail(s.key, err))
	}
	if wait := s.launchedAt().Add(r.Options.VisibilityGrace).Sub(s.now); wait > 0 {
		return untilDeadline(wait) // The inventory wakes the object if the instance shows up before.
	}
	if r.takeOther(s) {
		s.view = r.Inventory.Track(s.key, s.handle, false)
		return proceed()
	}
	return r.release(ctx, s)
}

// recordLocated writes down the provider ID of an instance that only its token has led to: the instance may have become a
// Node, which the Machine finds by it.
func (r *Reconciler[M]) recordLocated(ctx context.Context, s *scope[M]) outcome {
	if s.obj.CommonSpec().ProviderID != "" || s.handle.ProviderID == "" {
		return proceed()
	}
	base, ok := s.obj.DeepCopyObject().(client.Object)
	if !ok {
		return failed(errors.Errorf("%s is not an object", r.Kind))
	}
	s.obj.CommonSpec().ProviderID = s.handle.ProviderID
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, s.obj, patch); err != nil {
		return failed(errors.Wrapf(err, "recording %s in %s %s", s.handle.ProviderID, r.Kind, s.key))
	}
	return proceed()
}

// terminate asks the cloud to end the instance, in a batch with those of other objects, unless it is ending already.
func (r *Reconciler[M]) terminate(_ context.Context, s *scope[M]) outcome {
	answer, answered := r.terminations.Take(s.key, s.handle)
	if answered && answer.Err == nil {
		r.ending(s, answer.Value)
	}
	if s.facts.missing || s.view.Known && hasEnded(s.view.Instance.State) {
		return proceed()
	}
	s.facts.standing = &reasoned{driverv1.TerminatingInstanceReason, "Asking the cloud to end the instance"}
	switch {
	case answered && driver.IsNotFound(answer.Err):
		return r.believeAbsence(s, answer.Err, answer.At)
	case answered && foreignOf(answer.Err) != nil:
		return r.isForeign(s, answer.Err)
	case answered:
		s.facts.standing = explainDeletion(answer.Err)
		return untilDeadline(r.backoff.fail(s.key, answer.Err))
	}
	if wait, err := r.backoff.remaining(s.key); wait > 0 {
		s.facts.standing = explainDeletion(err)
		return untilDeadline(wait)
	}
	return r.awaitAnswer(s, r.terminations.Ask(s.key, s.handle), s.facts.standing)
}

// ending takes in that the cloud is ending the instance, or has ended it before.
func (r *Reconciler[M]) ending(s *scope[M], t termination) {
	r.backoff.forget(s.key)
	if t.accepted {
		s.announceNormal(eventTerminating, "Terminate", "Asked the cloud to end instance %s", s.handle.ProviderID)
	}
	if s.view.Known && hasEnded(s.view.Instance.State) {
		return // A list has shown it meanwhile, and perhaps more.
	}
	s.view.Instance, s.view.Known = t.instance, true
	s.view.Instance.ProviderID = s.handle.ProviderID
	r.Inventory.Put(s.handle.Scope, s.view.Instance)
}

// believeAbsence proceeds if the cloud did not know the instance past the grace; before that it may only not list it yet.
// err is what the cloud said at that time.
func (r *Reconciler[M]) believeAbsence(s *scope[M], err error, at time.Time) outcome {
	if s.launchedAt().Add(r.Options.VisibilityGrace).After(at) {
		s.facts.standing = &reasoned{driverv1.InstanceNotVisibleReason,
			"The instance was launched a short while ago and the cloud does not list it yet; it is ended as soon as it shows"}
		return untilDeadline(r.backoff.fail(s.key, err))
	}
	r.backoff.forget(s.key)
	s.facts.missing, s.view.Known = true, false
	return proceed()
}

// awaitTermination waits for the cloud to say that the instance has ceased to exist.
func (r *Reconciler[M]) awaitTermination(ctx context.Context, s *scope[M]) outcome {
	if s.facts.missing {
		return proceed()
	}
	s.facts.observed = s.observedWhileEnding()
	s.facts.standing = &reasoned{driverv1.TerminatingInstanceReason,
		"The cloud is ending the instance" + listError(s.view.Err)}
	if s.view.Instance.State == driverv1.InstanceTerminated {
		return proceed()
	}
	r.Inventory.Track(s.key, s.handle, true)
	if s.view.Listed || s.view.ListedAt.IsZero() {
		return untilEvent() // The inventory lists it and wakes the object when it changes.
	}
	return r.confirmTermination(ctx, s)
}

// confirmTermination asks the cloud itself about an instance that lists do not hold.
func (r *Reconciler[M]) confirmTermination(ctx context.Context, s *scope[M]) outcome {
	if wait, _ := r.backoff.remaining(s.key); wait > 0 {
		return untilDeadline(wait)
	}
	if out := r.takeTurn(ctx, s); !out.proceed {
		return out
	}
	instance, err := r.askCloud(ctx, s)
	switch {
	case driver.IsNotFound(err):
		return r.believeAbsence(s, err, s.now)
	case err != nil:
		return untilDeadline(r.backoff.fail(s.key, err))
	case instance.State != driverv1.InstanceTerminated:
		pending := driver.NewUnknownError("Observe", "", errors.Errorf("the instance is %s", instance.State))
		return untilDeadline(r.backoff.fail(s.key, pending))
	}
	r.backoff.forget(s.key)
	s.view.Instance = instance
	s.facts.observed = s.observedWhileEnding()
	return proceed()
}

// handOverGrace is for how long after its deletion an object waits for its Machine to take the provider ID over.
const handOverGrace = 30 * time.Second

// handOver waits until a Machine that is being deleted knows the provider ID. Millwright's core deletes an object that
// has one only when it has copied it; here that matters when the ID was recorded afterwards. Other cores may never
// copy it, so the wait is bounded.
func (r *Reconciler[M]) handOver(_ context.Context, s *scope[M]) outcome {
	if s.owner == nil || s.owner.DeletionTimestamp.IsZero() || s.owner.Spec.ProviderID != "" || s.handle.ProviderID == "" {
		return proceed()
	}
	wait := s.obj.GetDeletionTimestamp().Add(handOverGrace).Sub(s.now)
	if wait <= 0 {
		return proceed()
	}
	s.facts.standing = &reasoned{driverv1.WaitingForOwnerMachineReason,
		"The instance is gone; waiting for the Machine to take over its provider ID, by which it finds its Node"}
	return untilDeadline(wait)
}

// release lets the object go.
func (r *Reconciler[M]) release(ctx context.Context, s *scope[M]) outcome {
	base, ok := s.obj.DeepCopyObject().(client.Object)
	if !ok {
		return failed(errors.Errorf("%s is not an object", r.Kind))
	}
	controllerutil.RemoveFinalizer(s.obj, Finalizer)
	patch := client.MergeFromWithOptions(base, client.MergeFromWithOptimisticLock{})
	if err := client.IgnoreNotFound(r.Client.Patch(ctx, s.obj, patch)); err != nil {
		return failed(errors.Wrapf(err, "removing the finalizer of %s %s", r.Kind, s.key))
	}
	s.released = true
	if s.handle.ProviderID != "" {
		s.announceNormal(eventTerminated, "Terminate", "Instance %s and what was launched with it are gone", s.handle.ProviderID)
	}
	r.forget(s.key)
	return done()
}

// observedWhileEnding returns the instance for the status, if more is known of it than its state.
func (s *scope[M]) observedWhileEnding() *driver.Instance {
	if s.view.Instance.ID == "" {
		return nil
	}
	return &s.view.Instance
}

func hasEnded(state driverv1.InstanceState) bool {
	return state == driverv1.InstanceTerminating || state == driverv1.InstanceTerminated
}

// explainDeletion explains why the cloud did not take the request to end the instance.
func explainDeletion(err error) *reasoned {
	if foreign := foreignOf(err); foreign != nil {
		return &reasoned{driverv1.DeletionBlockedReason, foreign.Error()}
	}
	switch driver.ClassOf(err) {
	case driver.ClassTerminal:
		return &reasoned{driverv1.DeletionBlockedReason, err.Error() +
			". Tried again slowly; remove what protects the instance"}
	case driver.ClassUnknown:
		return &reasoned{driverv1.CloudErrorReason, strings.TrimRight(err.Error(), ".") + ". Tried again after a while that grows"}
	default:
		return explain(err)
	}
}
