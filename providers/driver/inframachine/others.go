package inframachine

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"millwright.dev/contracts/controller/outcome"
	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/batch"
)

// withOthers adds to an explanation that further instances carry the mark of the object: the answer of a call was lost and
// its instance showed later than could be, or a user marked them. They may hold Nodes, so they are terminated only
// with the object.
func (r *Reconciler[M]) withOthers(s *scope[M], why *explanation) *explanation {
	if len(s.view.Others) == 0 || why == nil {
		return why
	}
	others := fmt.Sprintf("This object has a second live instance, which it does not name: %s. It is terminated when the object "+
		"is deleted, or terminate it by hand", idsOf(s.view.Others))
	if ready := meta.FindStatusCondition(
		s.Object.CommonStatus().Conditions,
		driverv1.ReadyCondition,
	); ready == nil ||
		!strings.Contains(ready.Message, others) {
		s.events.Warning(secondEvent, "Observe", "%s", others)
	}
	if why.message == "" {
		return &explanation{why.reason, others}
	}
	return &explanation{why.reason, why.message + ". " + others}
}

// adoptOther makes an instance that carries the mark of an object being deleted the one that it names, if it names none.
func (r *Reconciler[M]) adoptOther(s *scope[M]) bool {
	other, ok := r.inventory.Owned(s.handle)
	if ok {
		s.handle.ProviderID = other.ProviderID
	}
	return ok
}

// terminateOthers asks the cloud to end what carries the mark of the object beside the instance that it names.
func (r *Reconciler[M]) terminateOthers(_ context.Context, s *scope[M]) outcome.Outcome {
	var latest *batch.Pending
	for _, other := range s.view.Others {
		handle := s.handle
		handle.ProviderID = other.ProviderID
		answer, answered := r.terminations.Take(s.Key(), handle)
		if answered && driver.IgnoreNotFound(answer.Err) == nil {
			r.acceptOtherTermination(s, other, answer.Value)
			continue
		}
		if hasEnded(other.State) {
			continue
		}
		s.observed.state = &explanation{driverv1.TerminatingInstanceReason, "Asking the cloud to terminate " + other.ID}
		if answered {
			s.observed.state = explainDeletion(answer.Err)
			return outcome.WaitFor(r.backoff.fail(s.Key(), answer.Err))
		}
		if wait, err := r.backoff.remaining(s.Key()); wait > 0 {
			s.observed.state = explainDeletion(err)
			return outcome.WaitFor(wait)
		}
		pending := r.terminations.Ask(s.Key(), handle)
		latest = &pending
	}
	if latest != nil {
		return r.awaitAnswer(s, *latest, s.observed.state)
	}
	return outcome.Continue()
}

// acceptOtherTermination takes in that the cloud is terminating the instance, or does not know it any more.
func (r *Reconciler[M]) acceptOtherTermination(s *scope[M], other driver.Instance, t termination) {
	r.backoff.forget(s.Key())
	if t.accepted {
		s.events.Normal(terminatingEvent, "Terminate", "Asked the cloud to terminate instance %s", other.ProviderID)
	}
	if !hasEnded(other.State) {
		other.State = driverv1.InstanceTerminating
		r.inventory.Put(s.handle.Scope, other)
	}
}

// awaitOthers waits until the cloud reports that they have ceased to exist, or does not list them any more.
func (r *Reconciler[M]) awaitOthers(_ context.Context, s *scope[M]) outcome.Outcome {
	if len(s.view.Others) == 0 {
		return outcome.Continue()
	}
	r.inventory.Track(s.Key(), s.handle, true)
	s.observed.state = &explanation{
		driverv1.TerminatingInstanceReason,
		"The cloud is terminating " + idsOf(s.view.Others) + listError(s.view.Err),
	}
	return outcome.Wait()
}

func idsOf(instances []driver.Instance) string {
	ids := make([]string, 0, len(instances))
	for _, i := range instances {
		ids = append(ids, i.ID)
	}
	return strings.Join(ids, ", ")
}
