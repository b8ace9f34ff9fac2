package inframachine

import (
	"context"
	"fmt"

	"github.com/pkg/errors"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// checkMark stops the deletion of an object whose instance does not carry its mark. Provider ID and launch record are
// claims of anyone who may write the object; the mark is set by those who have rights in the cloud.
func (r *Reconciler[M]) checkMark(_ context.Context, s *scope[M]) outcome.Outcome {
	_, latest := r.backoff.remaining(s.Key())
	if s.view.Known && s.handle.Owns(s.view.Instance) {
		if foreignOf(latest) != nil {
			r.backoff.forget(s.Key())
		}
		return outcome.Continue()
	}
	if s.view.ListedAt.IsZero() && s.view.Err == nil {
		s.observed.state = &explanation{driverv1.TerminatingInstanceReason, "Waiting for the first list of instances"}
		r.inventory.Track(s.Key(), s.handle, true)
		return outcome.Wait()
	}
	if r.isGone(s) {
		return outcome.Continue()
	}
	answer, out := r.look(s)
	instance, err := answer.Value, answer.Err
	switch {
	case !out.Finished():
		return out
	case driver.IsNotFound(err):
		return r.acceptLook(s, answer)
	case err != nil:
		s.observed.state = explainDeletion(err)
		return outcome.WaitFor(r.backoff.fail(s.Key(), err))
	case !s.handle.Owns(instance) && instance.State != driverv1.InstanceTerminated:
		return r.isForeign(s, r.foreign(s.handle, instance))
	}
	r.backoff.forget(s.Key())
	if instance.ProviderID != s.handle.ProviderID { // Lists show it by its own, and not as another one.
		s.handle.ProviderID = instance.ProviderID
		s.view = r.inventory.Track(s.Key(), s.handle, false)
	}
	r.inventory.Put(s.handle.Scope, instance)
	s.view.Instance, s.view.Known = instance, true
	return outcome.Continue()
}

// isForeign leaves an instance alone that does not carry the mark of the object, and explains what to do. A mark that is set
// later shows in the inventory.
func (r *Reconciler[M]) isForeign(s *scope[M], err error) outcome.Outcome {
	r.inventory.Track(s.Key(), s.handle, false) // There is no event when a user marks it.
	s.observed.state = explain(err)
	if s.observed.deleting {
		s.observed.state = explainDeletion(err)
	}
	wait, latest := r.backoff.remaining(s.Key())
	if wait == 0 || foreignOf(latest) == nil {
		wait = r.backoff.fail(s.Key(), err)
	}
	return outcome.WaitFor(wait)
}

// foreign is the error of an instance that does not carry the mark of the handle.
func (r *Reconciler[M]) foreign(handle driver.Handle, instance driver.Instance) error {
	return driver.NewTerminalError("Observe", "", &foreignError{instance: instance.ID, mark: r.cloud.Mark(handle)})
}

// foreignError means that an instance does not carry the mark of the object.
type foreignError struct {
	instance, mark string
	// why it is not the object's; empty if nothing is known beside that.
	why string
}

func (e *foreignError) Error() string {
	why := ""
	if e.why != "" {
		why = ", since " + e.why
	}
	return fmt.Sprintf("Instance %s is not marked as this object's and is left alone%s. To let the object have it, with the "+
		"right to terminate it, mark it in the cloud: %s. To delete the object without it, remove the finalizer %s", e.instance, why, e.mark, Finalizer)
}

// foreignOf returns the error if it means that the instance has another owner, or that the name is taken by such an instance.
func foreignOf(err error) error {
	var foreign *foreignError
	var taken *nameTakenError
	switch {
	case errors.As(err, &foreign):
		return foreign
	case errors.As(err, &taken):
		return taken
	}
	return nil
}
