package behaviour

import (
	"cmp"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// infraMove moves a machine's objects as clusterctl move does.
func infraMove() conformance.Case[*Env] {
	return scenario("Move", []rules.ID{"IM-030", "IM-031", "IM-032"}, func(w *world) {
		w.infra(all, nil, false)
		w.mustBeProvisioned()
		before := w.settled()
		id, had := w.providerID(before), w.state()
		w.pause(true)
		w.awaitPaused(w.Timeouts.React.Duration)
		w.remove()
		if deviation := w.quiet(func() string { return w.lost(had) }); deviation != "" {
			w.fail("IM-032", "the machine is left alone when its paused object is removed", deviation)
			return
		}
		if w.Probe == nil {
			w.skip("IM-032", noProbe)
		} else {
			w.pass("IM-032", "%v was left in %s after the object was removed", had.machines, w.Timeouts.Quiet.Duration)
		}
		w.recreate()
		w.pause(false)
		w.movedBack(before, id, had)
	})
}

// settled returns the object once its status is complete.
func (w *world) settled() *unstructured.Unstructured {
	w.await(w.Timeouts.React.Duration, func(o *unstructured.Unstructured) bool {
		status, _ := condition(o, clusterv1.ReadyCondition)
		addresses, _ := w.accessor().Addresses(o)
		return status == metav1.ConditionTrue && len(addresses) > 0
	})
	return objectOrEmpty(w.object())
}

// lost returns which machines have changed.
func (w *world) lost(had state) string {
	if w.Probe == nil {
		return ""
	}
	now := w.machines()
	if fmt.Sprint(ids(now)) != fmt.Sprint(had.machines) {
		return fmt.Sprintf("the infrastructure had the machines %v and has %v", had.machines, ids(now))
	}
	for _, m := range now {
		if !m.Running {
			return "machine " + m.ID + " is being terminated"
		}
	}
	return ""
}

// moved is what a move removes and recreates.
type moved struct {
	object  *unstructured.Unstructured
	machine *clusterv1.Machine
}

// remove removes the provider's object without its provider: finalizers first.
func (w *world) remove() {
	machine := &clusterv1.Machine{}
	w.must(w.Client.Get(w.ctx, w.key(), machine), "to read the Machine")
	bare := &unstructured.Unstructured{}
	bare.SetGroupVersionKind(w.Kind)
	w.must(retry(w.ctx, func() error {
		if err := w.Client.Get(w.ctx, w.key(), bare); err != nil {
			return err
		}
		w.removed = &moved{bare.DeepCopy(), machine}
		before := bare.DeepCopy()
		bare.SetFinalizers(nil)
		return w.Client.Patch(w.ctx, bare, locked(before))
	}), "to remove finalizers")
	w.must(client.IgnoreNotFound(retry(w.ctx, func() error {
		uid, version := bare.GetUID(), bare.GetResourceVersion()
		err := w.Client.Delete(w.ctx, bare, client.Preconditions{UID: &uid, ResourceVersion: &version})
		if apierrors.IsConflict(err) {
			return cmp.Or(w.Client.Get(w.ctx, w.key(), bare), err)
		}
		return err
	})), "to remove the provider's object")
	if !w.awaitGone(w.Timeouts.React.Duration) {
		w.stop("the object was not gone %s after its finalizers were removed and it was deleted: the provider or another user added them again",
			w.Timeouts.React.Duration)
	}
}

// locked returns a patch that is refused once the object has changed: it may be sent twice, and arrive late, when the object must keep its
// finalizers.
func locked(before client.Object) client.Patch {
	return client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})
}

// recreate creates Machine and object again, with new UIDs and without status; also after an incomplete earlier attempt.
func (w *world) recreate() *unstructured.Unstructured {
	machine := &clusterv1.Machine{ObjectMeta: w.meta()}
	w.must(client.IgnoreNotFound(w.Client.Delete(w.ctx, machine)), "to remove the Machine")
	again := &clusterv1.Machine{ObjectMeta: w.meta(), Spec: w.removed.machine.Spec}
	w.must(retryExisting(w, again), "to recreate the Machine")
	w.uids = append(w.uids, string(again.UID))
	object := w.removed.object.DeepCopy()
	unstructured.RemoveNestedField(object.Object, "status")
	object.SetUID("")
	object.SetResourceVersion("")
	object.SetGeneration(0)
	object.SetManagedFields(nil)
	object.SetCreationTimestamp(metav1.Time{})
	object.SetOwnerReferences([]metav1.OwnerReference{ownerOf(again)})
	w.create(object)
	w.uids = append(w.uids, string(object.GetUID()))
	w.removed = nil
	return object
}

// putBack ends a case that was stopped after it had removed the object: it recreates it, or restores the finalizers if it still exists,
// since without them it would be gone at once when it is deleted, and its machine would be left.
func (w *world) putBack() {
	reason := conformance.Early(func() {
		w.must(retry(w.ctx, func() error {
			now := w.live()
			if now == nil {
				w.recreate()
				return nil
			}
			if now.GetUID() != w.removed.object.GetUID() {
				return nil
			}
			return w.secure(now)
		}), "to restore finalizers")
	})
	if reason != "" {
		w.logf("%s %s was removed and cannot be restored, check whether its machine is left: %s", w.Kind.Kind, w.id, reason)
	}
}

// secure restores the object's finalizers, and changes its resource version: requests that are perhaps still in flight
// are then refused.
func (w *world) secure(object *unstructured.Unstructured) error {
	before := object.DeepCopy()
	if len(object.GetFinalizers()) == 0 {
		object.SetFinalizers(w.removed.object.GetFinalizers())
	}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[touched] = fmt.Sprint(time.Now().UnixNano())
	object.SetAnnotations(annotations)
	err := w.Client.Patch(w.ctx, object, locked(before))
	if apierrors.IsNotFound(err) {
		// It is gone just now, and has to be recreated.
		return apierrors.NewConflict(schema.GroupResource{Group: w.Kind.Group, Resource: w.Kind.Kind}, w.id, err)
	}
	return err
}

// retryExisting creates an object as soon as the previous one is gone.
func retryExisting(w *world, object client.Object) error {
	var err error
	w.until(w.Timeouts.React.Duration, func() bool {
		err = w.Client.Create(w.ctx, object)
		return !apierrors.IsAlreadyExists(err)
	})
	return err
}

// movedBack checks that the object has its machine again, with the same status as before.
func (w *world) movedBack(before *unstructured.Unstructured, id string, had state) {
	again := w.awaitProvisioned()
	object := objectOrEmpty(w.object())
	now := w.state()
	seen := fmt.Sprintf("spec.providerID was %s and is %s; machines were %v and are %v", id, w.providerID(object), had.machines, now.machines)
	same := w.providerID(object) == id && fmt.Sprint(now) == fmt.Sprint(had)
	w.check(same, "IM-030", "the recreated object gets that machine and no other", seen)
	if w.providerID(object) != id {
		w.skip("IM-031", "the object got another machine")
		return
	}
	if paused, _ := condition(object, clusterv1.PausedCondition); !again && paused == metav1.ConditionTrue {
		w.skip("IM-031", "the provider did not continue after the pause")
		return
	}
	if !again {
		seen := fmt.Sprintf("it did not within %s", w.Timeouts.Provision.Duration)
		w.fail("IM-031", w.accessor().ProvisionedPath().String()+" becomes true again", seen)
		return
	}
	deviation := ""
	w.until(w.Timeouts.React.Duration, func() bool {
		deviation = w.differs(before, objectOrEmpty(w.object()))
		return deviation == ""
	})
	evidence := "provisioned, addresses, failure domain and condition Ready are as before"
	w.unless(deviation, "IM-031", "the status is the same as before", evidence)
}

func (w *world) differs(before, now *unstructured.Unstructured) string {
	a, _ := w.accessor().Addresses(before)
	b, _ := w.accessor().Addresses(now)
	if len(a) != len(b) {
		return fmt.Sprintf("status.addresses had %d addresses and has %d", len(a), len(b))
	}
	domain, _ := w.accessor().FailureDomain(before)
	if again, _ := w.accessor().FailureDomain(now); again != domain {
		return fmt.Sprintf("the failure domain was %q and is %q", domain, again)
	}
	was, _ := condition(before, clusterv1.ReadyCondition)
	if is, text := condition(now, clusterv1.ReadyCondition); is != was {
		return fmt.Sprintf("condition Ready was %q and is %q: %s", was, is, text)
	}
	return ""
}
