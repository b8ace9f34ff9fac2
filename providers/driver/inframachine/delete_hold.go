package inframachine

import (
	"context"
	"time"

	"github.com/pkg/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/controller/outcome"
	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
)

// holdSettling delays the report of a hold that ends by itself. The core deletes the object a moment before it reports in the Machine that
// the drain is over.
const holdSettling = 5 * time.Second

// awaitMachine keeps the instance until its Machine has been drained. A user, a foreground deletion, or the deletion of the namespace or
// CRD may delete the object before its Machine.
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

// findMachine returns the Machine that owns the object or refers to it, nil if there is none. It does not require the UID of an owner
// reference: an export that is applied again has the UID of an earlier Machine. A Machine that only has the same provider ID is a copy.
// If the cache has no such Machine, it asks the API server.
func (r *Reconciler[M]) findMachine(ctx context.Context, s *scope[M]) (*clusterv1.Machine, error) {
	if s.owner != nil {
		return s.owner, nil
	}
	machine, err := r.findNamedMachine(ctx, r.Client, s)
	if err != nil || machine != nil {
		return machine, err
	}
	// A Machine of another name may refer to an object that nothing owns, or that another Machine owned.
	list := &clusterv1.MachineList{}
	if err := r.Client.List(ctx, list, client.InNamespace(s.Key().Namespace), client.UnsafeDisableDeepCopy); err != nil {
		return nil, errors.Wrap(err, "listing Machines")
	}
	for i := range list.Items {
		if r.refersTo(&list.Items[i], s) {
			return &list.Items[i], nil
		}
	}
	return r.findNamedMachine(ctx, r.APIReader, s)
}

// findNamedMachine returns the Machine of the name in the owner reference, or of the object's name, if it owns the object or refers to it.
func (r *Reconciler[M]) findNamedMachine(ctx context.Context, reader client.Reader, s *scope[M]) (*clusterv1.Machine, error) {
	names := []string{s.Key().Name}
	if owner := ownerMachineName(s.Object); owner != "" && owner != s.Key().Name {
		names = []string{owner, s.Key().Name}
	}
	for _, name := range names {
		machine := &clusterv1.Machine{}
		key := client.ObjectKey{Namespace: s.Key().Namespace, Name: name}
		err := reader.Get(ctx, key, machine)
		if client.IgnoreNotFound(err) != nil {
			return nil, errors.Wrapf(err, "reading Machine %s", key)
		}
		if err == nil && (r.refersTo(machine, s) || metav1.IsControlledBy(s.Object, machine)) {
			return machine, nil
		}
	}
	return nil, nil
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
