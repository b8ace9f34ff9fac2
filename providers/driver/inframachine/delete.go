package inframachine

import (
	"context"
	"strings"
	"time"

	"github.com/pkg/errors"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/contracts/controller/persist"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// checkFinalizer ends the work on an object that holds nothing in the cloud.
func (r *Reconciler[M]) checkFinalizer(_ context.Context, s *scope[M]) outcome.Outcome {
	if controllerutil.ContainsFinalizer(s.Object, Finalizer) {
		return outcome.Continue()
	}
	s.Gone = true
	r.forget(s.Key())
	return outcome.Wait()
}

// locate finds the instance. When a launch was asked for and its answer was lost, absence counts
// only after the grace: an instance that is not listed yet would be left behind for ever.
func (r *Reconciler[M]) locate(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.launchedErr != nil && s.handle.ProviderID == "" {
		s.observed.state = &explanation{driverv1.LaunchRecordUnreadableReason, s.launchedErr.Error() +
			". An instance may exist: restore the annotation, or terminate the instance and remove the finalizer " + Finalizer}
		return outcome.Wait()
	}
	if s.handle.ProviderID == "" && !s.launched.outstanding() && !r.adoptOther(s) {
		if !r.mayHaveLeft(s) {
			return r.release(ctx, s)
		}
		return outcome.InOrder(ctx, s, r.awaitDependants, r.release)
	}
	s.view = r.inventory.Track(s.Key(), s.handle, false) // The steps that wait for a list track it as in transition.
	s.dropEarlier()
	if s.view.Known && s.view.Instance.ProviderID == "" {
		return r.locateUncertain(ctx, s, s.view.Instance)
	}
	if s.view.Known || s.handle.ProviderID != "" {
		if s.handle.ProviderID == "" {
			s.handle.ProviderID = s.view.Instance.ProviderID
		}
		return outcome.Continue()
	}
	return r.locateByToken(ctx, s)
}

func (r *Reconciler[M]) locateByToken(ctx context.Context, s *scope[M]) outcome.Outcome {
	s.observed.state = &explanation{driverv1.WaitingForLaunchOutcomeReason,
		"A launch was asked for and its answer was lost; looking for its instance"}
	r.inventory.Track(s.Key(), s.handle, true)
	if wait, err := r.backoff.remaining(s.Key()); wait > 0 {
		if foreignOf(err) != nil {
			s.observed.state = explainDeletion(err)
		}
		return outcome.WaitFor(wait)
	}
	if out := r.takeTurn(ctx, s); !out.Finished() {
		return out
	}
	instance, err := r.askCloud(ctx, s)
	if err == nil && s.isNamesake(instance) {
		err = driver.NewNotFoundError("Observe", "", errors.New("the instance of this name does not carry the mark of this object"))
	}
	switch {
	case err == nil && instance.ProviderID == "":
		return r.locateUncertain(ctx, s, instance)
	case err == nil && !s.handle.Owns(instance):
		return r.isForeign(s, r.foreign(s.handle, instance))
	case err == nil:
		r.backoff.forget(s.Key())
		r.inventory.Put(s.handle.Scope, instance)
		s.handle.ProviderID = instance.ProviderID
		s.view.Instance, s.view.Known = instance, true
		return outcome.Continue()
	case !driver.IsNotFound(err):
		s.observed.state = explainDeletion(err)
		return outcome.WaitFor(r.backoff.fail(s.Key(), err))
	}
	if wait := r.graceLeft(s, s.Now); wait > 0 {
		return outcome.WaitFor(wait) // The inventory enqueues the object if the instance shows up before.
	}
	if r.adoptOther(s) {
		s.view = r.inventory.Track(s.Key(), s.handle, false)
		return outcome.Continue()
	}
	return outcome.InOrder(ctx, s, r.awaitDependants, r.release)
}

// locateUncertain waits for a launch that the cloud has accepted and that cannot be taken back, until there is an instance to
// terminate. One that has failed without any leaves nothing but what was to belong to it.
func (r *Reconciler[M]) locateUncertain(ctx context.Context, s *scope[M], i driver.Instance) outcome.Outcome {
	if i.State == driverv1.InstanceFailed || i.State == driverv1.InstanceTerminated {
		return outcome.InOrder(ctx, s, r.awaitDependants, r.release)
	}
	if hasEnded(i.State) || s.handle.Owns(i) && !s.Now.Before(s.launchedAt().Add(s.launchTimeout())) {
		s.view.Instance, s.view.Known = i, true
		return outcome.Continue() // The launch takes too long: what there is of it is terminated by its name or token.
	}
	s.observed.state = &explanation{driverv1.WaitingForLaunchOutcomeReason,
		"The cloud has accepted the launch; waiting for its instance, to terminate it"}
	r.inventory.Track(s.Key(), s.handle, true)
	return outcome.WaitFor(max(r.Options.ListFast, s.Now.Sub(s.launchedAt())/10))
}

// recordLocated records the provider ID of an instance that only its token has led to: the instance may have become a
// Node, which the Machine finds by it.
func (r *Reconciler[M]) recordLocated(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.Object.CommonSpec().ProviderID != "" || s.handle.ProviderID == "" {
		return outcome.Continue()
	}
	err := s.Patch(ctx, func(obj M) { obj.CommonSpec().ProviderID = s.handle.ProviderID })
	return outcome.FromError(errors.Wrapf(err, "recording %s", s.handle.ProviderID))
}

// terminate asks the cloud to terminate the instance, in a batch with those of other objects, unless it is terminating already.
func (r *Reconciler[M]) terminate(_ context.Context, s *scope[M]) outcome.Outcome {
	answer, answered := r.terminations.Take(s.Key(), s.handle)
	if answered && answer.Err == nil {
		r.acceptTermination(s, answer.Value)
	}
	r.recognizeTermination(s)
	if s.observed.missing || s.view.Known && hasEnded(s.view.Instance.State) {
		return outcome.Continue()
	}
	s.observed.instance = s.observedWhileEnding() // A termination that was accepted may have failed: the status must not say Terminating.
	s.observed.state = &explanation{driverv1.TerminatingInstanceReason, "Asking the cloud to terminate the instance"}
	switch {
	case answered && driver.IsNotFound(answer.Err):
		return r.acceptAbsence(s, answer.Err, answer.At)
	case answered && foreignOf(answer.Err) != nil:
		return r.isForeign(s, answer.Err)
	case answered:
		s.observed.state = explainDeletion(answer.Err)
		return outcome.WaitFor(r.backoff.fail(s.Key(), answer.Err))
	}
	if wait, err := r.backoff.remaining(s.Key()); wait > 0 {
		s.observed.state = explainDeletion(err)
		return outcome.WaitFor(wait)
	}
	return r.awaitAnswer(s, r.terminations.Ask(s.Key(), s.handle), s.observed.state)
}

// acceptTermination takes in that the cloud is terminating the instance, or has done so before.
func (r *Reconciler[M]) acceptTermination(s *scope[M], t termination) {
	if !t.accepted {
		r.backoff.forget(s.Key())
	} else { // The backoff stays: some clouds accept a termination and then fail it.
		r.terminated.set(s.Key(), s.Now)
		s.events.Normal(terminatingEvent, "Terminate", "Asked the cloud to terminate instance %s", s.handle.ProviderID)
	}
	if s.view.Known && hasEnded(s.view.Instance.State) {
		return // A list has shown it meanwhile, and perhaps more.
	}
	s.view.Instance, s.view.Known = t.instance, true
	s.view.Instance.ProviderID = s.handle.ProviderID
	r.inventory.Put(s.handle.Scope, s.view.Instance)
}

// acceptAbsence continues if the cloud did not know the instance after the grace; before that it may only not list it yet.
// err is what the cloud answered at that time.
func (r *Reconciler[M]) acceptAbsence(s *scope[M], err error, at time.Time) outcome.Outcome {
	if r.graceLeft(s, at) > 0 {
		s.observed.state = &explanation{driverv1.InstanceNotVisibleReason,
			"The instance was launched a short while ago and the cloud does not list it yet; it is terminated as soon as it is listed"}
		return outcome.WaitFor(r.backoff.fail(s.Key(), err))
	}
	// The backoff stays: what is waited for next may have failed before, and this is asked again each time.
	s.observed.missing, s.view.Known = true, false
	return outcome.Continue()
}

// awaitTermination waits until the cloud reports that the instance has ceased to exist.
func (r *Reconciler[M]) awaitTermination(_ context.Context, s *scope[M]) outcome.Outcome {
	if s.observed.missing {
		return outcome.Continue()
	}
	s.observed.instance = s.observedWhileEnding()
	s.observed.state = &explanation{driverv1.TerminatingInstanceReason,
		"The cloud is terminating the instance" + listError(s.view.Err)}
	if s.view.Instance.State == driverv1.InstanceTerminated {
		return outcome.Continue()
	}
	r.inventory.Track(s.Key(), s.handle, true)
	if s.view.Listed || s.view.ListedAt.IsZero() {
		return outcome.Wait() // The inventory lists it and enqueues the object when it changes.
	}
	return r.confirmTermination(s)
}

// handOverGrace is how long after its deletion an object waits for its Machine to take over provider ID and addresses.
const handOverGrace = 30 * time.Second

// handOver waits until a Machine that is being deleted knows the provider ID, and addresses if the object has some: by both it finds
// its Node. Millwright's core deletes an object that has them only when it has copied them; here that matters when they were
// reported afterwards. Other cores may never copy them, so the wait is bounded.
func (r *Reconciler[M]) handOver(_ context.Context, s *scope[M]) outcome.Outcome {
	if s.owner == nil || s.owner.DeletionTimestamp.IsZero() || s.handle.ProviderID == "" {
		return outcome.Continue()
	}
	unnamed := len(s.Object.CommonStatus().Addresses) > 0 && len(s.owner.Status.Addresses) == 0
	if s.owner.Spec.ProviderID != "" && !unnamed {
		return outcome.Continue()
	}
	wait := s.Object.GetDeletionTimestamp().Add(handOverGrace).Sub(s.Now)
	if wait <= 0 {
		return outcome.Continue()
	}
	s.observed.state = &explanation{driverv1.WaitingForOwnerMachineReason,
		"The instance is gone; waiting for the Machine to take over its provider ID and addresses, by which it finds its Node"}
	return outcome.WaitFor(wait)
}

// release removes the finalizer.
func (r *Reconciler[M]) release(ctx context.Context, s *scope[M]) outcome.Outcome {
	if err := s.RemoveFinalizer(ctx, Finalizer); err != nil {
		return r.notReleased(s, err)
	}
	if s.handle.ProviderID != "" {
		s.events.Normal(terminatedEvent, "Terminate", "Instance %s is gone, and so is everything that carries its mark", s.handle.ProviderID)
	}
	r.reached(s, stateReleased)
	r.forget(s.Key())
	return outcome.Wait()
}

// notReleased backs off if the API server refuses to remove the finalizer. Otherwise the cloud is asked again each time what is left.
func (r *Reconciler[M]) notReleased(s *scope[M], err error) outcome.Outcome {
	refusal := persist.Refusal(err)
	if refusal == "" {
		return outcome.FromError(err)
	}
	s.observed.state = explainRefusal(refusal)
	return outcome.WaitFor(r.backoff.fail(s.Key(), err))
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

// explainUnseen explains why an object stays of which the provider may not see whether anything of it is left in the cloud: that it may not
// does not show that there is nothing. Only a person can know that the account itself is gone.
func explainUnseen(err error) *explanation {
	why := explain(err)
	why.message += ". The object stays until it can be seen that nothing of it is left; if the account and all that was in it are gone, " +
		"remove the finalizer " + Finalizer
	return why
}

// explainDeletion explains why the cloud did not accept the request to terminate the instance.
func explainDeletion(err error) *explanation {
	if foreign := foreignOf(err); foreign != nil {
		return &explanation{driverv1.DeletionBlockedReason, foreign.Error()}
	}
	if dependantsOf(err) != nil {
		return explainDependants(err)
	}
	switch driver.ClassOf(err) {
	case driver.ClassTerminal:
		return &explanation{driverv1.DeletionBlockedReason, err.Error() +
			". Retried slowly; if the instance is protected from deletion, disable the protection in the cloud"}
	case driver.ClassAuth:
		return explainUnseen(err)
	case driver.ClassUnknown:
		return &explanation{driverv1.CloudErrorReason, strings.TrimRight(err.Error(), ".") + ". Retried with backoff"}
	default:
		return explain(err)
	}
}
