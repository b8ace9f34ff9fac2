package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// holdSettling is how long a hold is not reported that ends by itself: the core deletes the object, and reports a moment later in the
// Machine that the drain is over.
const holdSettling = 5 * time.Second

// awaitMachine keeps the instance until its Machine has been drained, whoever has deleted the object first: the garbage collector in a
// foreground deletion, a user, or the deletion of the namespace or of the CRD.
func (r *Reconciler[M]) awaitMachine(ctx context.Context, s *scope[M]) outcome.Outcome {
	if s.observed.missing || s.view.Known && hasEnded(s.view.Instance.State) {
		return outcome.Continue()
	}
	c := candidate{
		object: s.Object, providerID: s.Object.CommonSpec().ProviderID,
		neverRan: s.Object.CommonStatus().HasFailed() && !s.Object.CommonStatus().IsProvisioned(),
		owner:    ownerMachineName(s.Object),
	}
	if !c.needsMachine() {
		return outcome.Continue()
	}
	machine, err := r.findMachine(ctx, s)
	if err != nil {
		return outcome.FromError(err)
	}
	held := holdTermination(c, machine, s.Now)
	if held == nil {
		return outcome.Continue()
	}
	if wait := s.Object.GetDeletionTimestamp().Add(holdSettling).Sub(s.Now); wait > 0 && !held.needsUser && !s.reportsHold() {
		s.observed.unsettled = true
		return outcome.WaitFor(wait)
	}
	s.observed.state = &held.explanation
	s.observed.held = held.needsUser
	if !held.until.IsZero() {
		return outcome.WaitFor(held.until.Sub(s.Now))
	}
	return outcome.Wait() // A change of the Machine enqueues the object.
}

// reportsHold reports whether the condition Ready, as it was read, has reported a hold.
func (s *scope[M]) reportsHold() bool {
	ready := meta.FindStatusCondition(s.Original.CommonStatus().Conditions, driverv1.ReadyCondition)
	return ready != nil && ready.Reason == driverv1.WaitingForMachineDeletionReason
}

// findMachine returns the Machine whose instance the object has, nil if there is none. An owner reference may be of an earlier Machine of
// that name, as in an export that is applied again: what the Machine refers to counts. The cache decides if it has such a Machine; that
// there is none is read from the API server.
func (r *Reconciler[M]) findMachine(ctx context.Context, s *scope[M]) (*clusterv1.Machine, error) {
	names := []string{s.Key().Name}
	if owner := ownerMachineName(s.Object); owner != "" && owner != s.Key().Name {
		names = append(names, owner)
	}
	for _, reader := range []client.Reader{r.Client, r.APIReader} {
		for _, name := range names {
			machine := &clusterv1.Machine{}
			key := client.ObjectKey{Namespace: s.Key().Namespace, Name: name}
			err := reader.Get(ctx, key, machine)
			if client.IgnoreNotFound(err) != nil {
				return nil, errors.Wrapf(err, "reading Machine %s", key)
			}
			if err == nil && r.isMachineOf(machine, s) {
				return machine, nil
			}
		}
		if reader != r.Client {
			continue
		}
		// One of another name refers to an object that nothing owns, or that another one owned.
		list := &clusterv1.MachineList{}
		if err := r.Client.List(ctx, list, client.InNamespace(s.Key().Namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, errors.Wrap(err, "listing Machines")
		}
		for i := range list.Items {
			if r.isMachineOf(&list.Items[i], s) {
				return &list.Items[i], nil
			}
		}
	}
	return nil, nil
}

// isMachineOf reports whether the Machine refers to the object, or has its instance although it refers to another object by now.
func (r *Reconciler[M]) isMachineOf(machine *clusterv1.Machine, s *scope[M]) bool {
	return r.refersTo(machine, s) || machine.Spec.ProviderID != "" && machine.Spec.ProviderID == s.Object.CommonSpec().ProviderID
}

// ownerMachineName returns the name of the Machine that an owner reference names; empty for none.
func ownerMachineName(obj client.Object) string {
	for _, ref := range obj.GetOwnerReferences() {
		if isMachine(ref) {
			return ref.Name
		}
	}
	return ""
}
