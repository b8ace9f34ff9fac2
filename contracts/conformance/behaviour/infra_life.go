package behaviour

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// infraLife is a machine's lifecycle from creation to deletion.
func infraLife() conformance.Case[*Env] {
	ids := []rules.ID{
		"IM-002", "IM-003", "IM-004", "IM-007", "IM-009", "IM-011", "IM-012", "IM-014", "IM-016", "IM-021", "IM-028",
	}
	return scenario("Lifecycle", ids, func(w *world) {
		w.infra(all, nil, false)
		w.finalizerFirst()
		if !w.awaitProvisioned() {
			w.neverProvisioned()
			return
		}
		w.pass("IM-003", "%s became true", w.accessor().ProvisionedPath())
		w.providerIDInTime()
		w.addresses()
		w.readyFollows("IM-007", "IM-016")
		w.notPaused("IM-028")
		w.staysProvisioned()
		w.ends()
	})
}

// neverProvisioned fails the rule about what is missing.
func (w *world) neverProvisioned() {
	object := w.object()
	seen := fmt.Sprintf("after %s, spec.providerID is %q and %s is %t",
		w.Timeouts.Provision.Duration, w.providerID(object), w.accessor().ProvisionedPath(), w.provisioned(object))
	status, text := condition(object, clusterv1.ReadyCondition)
	if status != "" {
		seen += fmt.Sprintf("; condition Ready is %s: %s", status, text)
	}
	if _, err := w.accessor().Provisioned(objectOrEmpty(object)); err != nil {
		seen += "; " + err.Error()
	}
	if w.provisioned(object) {
		w.fail("IM-002", "spec.providerID is set when the machine is provisioned", seen)
		return
	}
	w.fail("IM-003", w.accessor().ProvisionedPath().String()+" becomes true once owner, bootstrap data and infrastructure exist", seen)
}

func objectOrEmpty(object *unstructured.Unstructured) *unstructured.Unstructured {
	if object == nil {
		return &unstructured.Unstructured{Object: map[string]any{}}
	}
	return object
}

// finalizerFirst checks that there is a finalizer whenever something shows that a machine was launched.
func (w *world) finalizerFirst() {
	seen, lacking := "", false
	w.until(w.Timeouts.Provision.Duration, func() bool {
		trace := w.trace()
		if trace == "" {
			return false
		}
		// Read after the infrastructure, and not from the watch, which may lag behind: a finalizer added between the two reads
		// counts in favor of the provider.
		if object := w.live(); object != nil {
			seen, lacking = trace, len(object.GetFinalizers()) == 0
		}
		return true
	})
	versions, _ := w.recorder.of(w.id)
	for _, v := range versions {
		if len(v.GetFinalizers()) == 0 && (w.providerID(v.Unstructured) != "" || w.provisioned(v.Unstructured)) {
			seen, lacking = "the object has a provider ID or is provisioned in "+w.version(v.Unstructured), true
		}
	}
	if seen == "" {
		return
	}
	deviation := ""
	if lacking {
		deviation = "there was none when " + seen
	}
	w.unless(deviation, "IM-021", "the object has a finalizer before anything is created for it",
		"there was one when the first trace of a machine was seen ("+w.basis()+")")
}

// providerIDInTime checks every version of the object.
func (w *world) providerIDInTime() {
	versions, _ := w.recorder.of(w.id)
	for _, v := range versions {
		if w.provisioned(v.Unstructured) && w.providerID(v.Unstructured) == "" {
			w.fail("IM-002", "spec.providerID is set when "+w.accessor().ProvisionedPath().String()+" becomes true",
				"in "+w.version(v.Unstructured)+" it is true and spec.providerID is not set")
			return
		}
	}
	w.pass("IM-002", "spec.providerID was %s in every version of a provisioned machine", w.providerID(w.object()))
}

var addressTypes = []clusterv1.MachineAddressType{
	clusterv1.MachineHostName, clusterv1.MachineExternalIP, clusterv1.MachineInternalIP,
	clusterv1.MachineExternalDNS, clusterv1.MachineInternalDNS,
}

func (w *world) addresses() {
	has := w.await(w.Timeouts.React.Duration, func(o *unstructured.Unstructured) bool {
		addresses, err := w.accessor().Addresses(o)
		return err == nil && len(addresses) > 0
	})
	addresses, err := w.accessor().Addresses(objectOrEmpty(w.object()))
	seen := "status.addresses has addresses, each with type and address"
	if err != nil {
		seen = err.Error()
	} else if len(addresses) == 0 {
		seen = "status.addresses is empty"
	}
	w.check(has, "IM-004", "status.addresses lists the machine's addresses", seen)
	if !has {
		return
	}
	for _, address := range addresses {
		if !slices.Contains(addressTypes, address.Type) {
			w.fail("IM-014", fmt.Sprintf("one of %v", addressTypes), fmt.Sprintf("the type of an address is %q", address.Type))
			return
		}
	}
	w.pass("IM-014", "all addresses have types of the contract")
}

// readyFollows checks that Ready, if it exists, becomes True once the object is provisioned.
func (w *world) readyFollows(has, current rules.ID) {
	isTrue := func(o *unstructured.Unstructured) bool {
		status, _ := condition(o, clusterv1.ReadyCondition)
		return status == metav1.ConditionTrue
	}
	ready := w.await(w.Timeouts.React.Duration, isTrue)
	status, text := condition(w.object(), clusterv1.ReadyCondition)
	if status == "" {
		w.fail(has, "a condition Ready", "none")
		w.skip(current, "there is no condition Ready")
		return
	}
	w.pass(has, "condition Ready is %s: %s", status, text)
	w.check(ready, current, "condition Ready becomes True once the object is provisioned",
		fmt.Sprintf("within %s of it, condition Ready was %s: %s", w.Timeouts.React.Duration, status, text))
}

// notPaused checks condition Paused of an object that is not paused.
func (w *world) notPaused(rule rules.ID) {
	is := w.await(w.Timeouts.React.Duration, func(o *unstructured.Unstructured) bool {
		status, _ := condition(o, clusterv1.PausedCondition)
		return status == metav1.ConditionFalse
	})
	status, _ := condition(w.object(), clusterv1.PausedCondition)
	w.check(is, rule, "condition Paused is False while nothing pauses the object", fmt.Sprintf("condition Paused is %q", status))
}

// staysProvisioned triggers reconciles, and checks what must not change.
func (w *world) staysProvisioned() {
	for range 3 {
		w.touch()
	}
	w.quiet(func() string { return "" })
	versions, _ := w.recorder.of(w.id)
	was, id, lost, changed := false, "", "", ""
	for _, v := range versions {
		now, current := w.provisioned(v.Unstructured), w.providerID(v.Unstructured)
		if was && !now && lost == "" {
			lost = "it is no longer true in " + w.version(v.Unstructured)
		}
		if id != "" && current != id && changed == "" {
			changed = fmt.Sprintf("it was %s and is %q in %s", id, current, w.version(v.Unstructured))
		}
		was, id = was || now, current
	}
	evidence := "in every version of the object, across changes of annotations"
	w.unless(lost, "IM-011", w.accessor().ProvisionedPath().String()+" stays true", evidence)
	w.unless(changed, "IM-012", "spec.providerID never changes", evidence)
}

// unless fails a rule if there is a deviation.
func (w *world) unless(deviation string, rule rules.ID, expected, evidence string) {
	if deviation != "" {
		w.fail(rule, expected, deviation)
		return
	}
	w.pass(rule, "%s", evidence)
}

// ends deletes the object, and checks that it stays as long as its machine.
func (w *world) ends() {
	before := len(objectOrEmpty(w.object()).GetFinalizers())
	w.deleteSubject()
	ready := metav1.ConditionStatus("")
	if !w.awaitGone(w.Timeouts.Delete.Duration) {
		w.fail("IM-009", "the object is gone once its machine is", "it still exists after "+w.Timeouts.Delete.Duration.String())
		return
	}
	versions, _ := w.recorder.of(w.id)
	var deleting []seen
	for _, v := range versions {
		if v.GetDeletionTimestamp() == nil {
			continue
		}
		deleting = append(deleting, v)
		if status, _ := condition(v.Unstructured, clusterv1.ReadyCondition); status != "" && status != metav1.ConditionTrue {
			ready = status
		}
	}
	w.readyWhileDeleting(deleting, ready)
	if w.Probe == nil {
		w.skip("IM-009", "%s (the object had %d finalizers when it was deleted)", noProbe, before)
		return
	}
	left := w.machines()
	w.check(len(left) == 0, "IM-009", "the infrastructure has no machine of the object once the object is gone",
		"when the object was gone, the infrastructure had "+named(left))
}

// readyWhileDeleting checks condition Ready during a deletion that took long enough to see it.
func (w *world) readyWhileDeleting(deleting []seen, ready metav1.ConditionStatus) {
	if len(deleting) == 0 {
		return
	}
	took := deleting[len(deleting)-1].at.Sub(deleting[0].at)
	if had, _ := condition(deleting[0].Unstructured, clusterv1.ReadyCondition); had == "" || ready == "" && took < w.Timeouts.Quiet.Duration {
		return
	}
	w.check(ready != "", "IM-016", "condition Ready is not True while the machine is terminated",
		fmt.Sprintf("during the deletion, condition Ready was %q", ready))
}
