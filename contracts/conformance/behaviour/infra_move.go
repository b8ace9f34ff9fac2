package behaviour

import (
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
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
		old := w.remove()
		if deviation := w.quiet(func() string { return w.lost(had) }); deviation != "" {
			w.fail("IM-032", "the machine of an object that was removed while it is paused is left alone", deviation)
			return
		}
		if w.Probe == nil {
			w.skip("IM-032", noProbe)
		} else {
			w.pass("IM-032", "%v were left in %s after the object was removed", had.machines, w.Timeouts.Quiet.Duration)
		}
		w.recreate(old)
		w.pause(false)
		w.movedBack(before, id, had)
	})
}

// settled is the object once its status has all that it will have.
func (w *world) settled() *unstructured.Unstructured {
	w.await(w.Timeouts.React.Duration, func(o *unstructured.Unstructured) bool {
		status, _ := condition(o, clusterv1.ReadyCondition)
		addresses, _ := w.accessor().Addresses(o)
		return status == metav1.ConditionTrue && len(addresses) > 0
	})
	return objectOrEmpty(w.object())
}

// lost says which machines are not as they were.
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
			return "machine " + m.ID + " is being ended"
		}
	}
	return ""
}

// remove takes the provider's object away, without its provider: finalizers first. It returns what was there.
func (w *world) remove() *unstructured.Unstructured {
	old := &unstructured.Unstructured{}
	old.SetGroupVersionKind(w.Kind)
	w.must(w.Client.Get(w.ctx, w.key(), old), "to read the provider's object")
	bare := old.DeepCopy()
	w.removed = old
	patch := client.RawPatch(types.MergePatchType, []byte(noFinalizers))
	w.must(w.Client.Patch(w.ctx, bare, patch), "to take finalizers off")
	w.must(client.IgnoreNotFound(w.Client.Delete(w.ctx, bare)), "to remove the provider's object")
	if !w.awaitGone(w.Timeouts.React.Duration) {
		w.stop("the object was not gone %s after its finalizers were taken off and it was deleted: the provider put them back, or somebody did",
			w.Timeouts.React.Duration)
	}
	return old
}

// recreate makes Machine and object anew, with other UIDs and without status.
func (w *world) recreate(old *unstructured.Unstructured) *unstructured.Unstructured {
	machine := &clusterv1.Machine{}
	w.must(w.Client.Get(w.ctx, w.key(), machine), "to read the Machine")
	w.must(w.Client.Delete(w.ctx, machine), "to remove the Machine")
	again := &clusterv1.Machine{ObjectMeta: w.meta(), Spec: machine.Spec}
	w.must(retryExisting(w, again), "to make the Machine anew")
	w.uids = append(w.uids, string(again.UID))
	moved := old.DeepCopy()
	unstructured.RemoveNestedField(moved.Object, "status")
	moved.SetUID("")
	moved.SetResourceVersion("")
	moved.SetGeneration(0)
	moved.SetManagedFields(nil)
	moved.SetCreationTimestamp(metav1.Time{})
	moved.SetOwnerReferences([]metav1.OwnerReference{ownerOf(again)})
	w.create(moved)
	w.uids = append(w.uids, string(moved.GetUID()))
	w.removed = nil
	return moved
}

// putBack ends a case that came no further than to remove the object: it makes it anew, or puts the finalizers back if it is still there,
// since what has none goes at once when it is deleted, and its machine would stay.
func (w *world) putBack() {
	reason := conformance.Early(func() {
		now := w.live()
		if now == nil {
			w.recreate(w.removed)
			return
		}
		if len(now.GetFinalizers()) > 0 || now.GetUID() != w.removed.GetUID() {
			return
		}
		before := now.DeepCopy()
		now.SetFinalizers(w.removed.GetFinalizers())
		w.must(w.Client.Patch(w.ctx, now, client.MergeFrom(before)), "to put finalizers back")
	})
	if reason != "" {
		w.say("%s %s was removed and cannot be put back, look whether its machine is left: %s", w.Kind.Kind, w.id, reason)
	}
}

// retryExisting creates an object as soon as the one before it is gone.
func retryExisting(w *world, object client.Object) error {
	var err error
	w.until(w.Timeouts.React.Duration, func() bool {
		err = w.Client.Create(w.ctx, object)
		return !apierrors.IsAlreadyExists(err)
	})
	return err
}

// movedBack looks that the object has its machine again, and says of it what it said before.
func (w *world) movedBack(before *unstructured.Unstructured, id string, had state) {
	again := w.awaitProvisioned()
	object := objectOrEmpty(w.object())
	now := w.state()
	seen := fmt.Sprintf("spec.providerID was %s and is %s; machines were %v and are %v", id, w.providerID(object), had.machines, now.machines)
	same := w.providerID(object) == id && fmt.Sprint(now) == fmt.Sprint(had)
	w.check(same, "IM-030", "the object made anew gets the machine, and no other", seen)
	if w.providerID(object) != id {
		w.skip("IM-031", "the object got another machine")
		return
	}
	if paused, _ := condition(object, clusterv1.PausedCondition); !again && paused == metav1.ConditionTrue {
		w.skip("IM-031", "the provider did not go on after the pause")
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
	w.unless(deviation, "IM-031", "the status says the same as before", evidence)
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
