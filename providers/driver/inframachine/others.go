package inframachine

import (
	"context"
	"fmt"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"millwright.dev/providers/driver"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/providers/driver/batch"
)

// tellOthers adds to how things stand that further instances carry the mark of the object: the answer of a call was lost and
// its instance showed later than could be, or somebody marked them. They may hold Nodes, so they are ended with the object
// only.
func (r *Reconciler[M]) tellOthers(s *scope[M], why *reasoned) *reasoned {
	if len(s.view.Others) == 0 || why == nil {
		return why
	}
	others := fmt.Sprintf("This object has a second live instance, which it does not name: %s. It is ended when the object "+
		"is deleted, or end it by hand", idsOf(s.view.Others))
	if ready := meta.FindStatusCondition(s.obj.CommonStatus().Conditions, driverv1.ReadyCondition); ready == nil || !strings.Contains(ready.Message, others) {
		s.announceWarning(eventSecond, "Observe", "%s", others)
	}
	if why.message == "" {
		return &reasoned{why.reason, others}
	}
	return &reasoned{why.reason, why.message + ". " + others}
}

// takeOther makes an instance that carries the mark of an object being deleted the one that it names, if it names none.
func (r *Reconciler[M]) takeOther(s *scope[M]) bool {
	other, ok := r.Inventory.Owned(s.handle)
	if ok {
		s.handle.ProviderID = other.ProviderID
	}
	return ok
}

// endOthers asks the cloud to end what carries the mark of the object beside the instance that it names.
func (r *Reconciler[M]) endOthers(_ context.Context, s *scope[M]) outcome {
	var latest *batch.Pending
	for _, other := range s.view.Others {
		handle := s.handle
		handle.ProviderID = other.ProviderID
		answer, answered := r.terminations.Take(s.key, handle)
		if answered && driver.IgnoreNotFound(answer.Err) == nil {
			r.endingOther(s, other, answer.Value)
			continue
		}
		if hasEnded(other.State) {
			continue
		}
		s.facts.standing = &reasoned{driverv1.TerminatingInstanceReason, "Asking the cloud to end " + other.ID}
		if answered {
			s.facts.standing = explainDeletion(answer.Err)
			return untilDeadline(r.backoff.fail(s.key, answer.Err))
		}
		if wait, err := r.backoff.remaining(s.key); wait > 0 {
			s.facts.standing = explainDeletion(err)
			return untilDeadline(wait)
		}
		pending := r.terminations.Ask(s.key, handle)
		latest = &pending
	}
	if latest != nil {
		return r.awaitAnswer(s, *latest, s.facts.standing)
	}
	return proceed()
}

// endingOther takes in that the cloud is ending the instance, or does not know it any more.
func (r *Reconciler[M]) endingOther(s *scope[M], other driver.Instance, t termination) {
	r.backoff.forget(s.key)
	if t.accepted {
		s.announceNormal(eventTerminating, "Terminate", "Asked the cloud to end instance %s", other.ProviderID)
	}
	if !hasEnded(other.State) {
		other.State = driverv1.InstanceTerminating
		r.Inventory.Put(s.handle.Scope, other)
	}
}

// awaitOthers waits until the cloud says that they have ceased to exist, or lists them no more.
func (r *Reconciler[M]) awaitOthers(_ context.Context, s *scope[M]) outcome {
	if len(s.view.Others) == 0 {
		return proceed()
	}
	r.Inventory.Track(s.key, s.handle, true)
	s.facts.standing = &reasoned{driverv1.TerminatingInstanceReason, "The cloud is ending " + idsOf(s.view.Others) + listError(s.view.Err)}
	return untilEvent()
}

func idsOf(instances []driver.Instance) string {
	ids := make([]string, 0, len(instances))
	for _, i := range instances {
		ids = append(ids, i.ID)
	}
	return strings.Join(ids, ", ")
}
