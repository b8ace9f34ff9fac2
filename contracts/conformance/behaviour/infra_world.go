package behaviour

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance/probe"
	"millwright.dev/contracts/inframachine"
)

// needs is what an infrastructure machine waits for.
type needs struct{ cluster, infrastructure, data, owner bool }

var all = needs{true, true, true, true}

// noProbe is why rules are skipped that need the infrastructure's view.
const noProbe = "it needs the infrastructure's view: give a probe"

// infra makes an infrastructure machine with everything that the sample asks for; it returns the Machine.
func (w *world) infra(has needs, annotations map[string]string, paused bool) *clusterv1.Machine {
	if has.cluster {
		w.cluster(paused)
		if has.infrastructure {
			w.infrastructureReady()
		}
	}
	w.create(w.dataSecret())
	data := ""
	if has.data {
		data = w.id
	}
	machine := w.machine(w.reference(), w.nobody("Bootstrap"), data)
	owner := machine
	if !has.owner {
		owner = nil
	}
	w.subject(owner, annotations)
	return machine
}

// serveData says in the Machine that the bootstrap data are there.
func (w *world) serveData() {
	w.must(retry(w.ctx, func() error {
		machine := &clusterv1.Machine{}
		if err := w.Client.Get(w.ctx, w.key(), machine); err != nil {
			return err
		}
		machine.Spec.Bootstrap.DataSecretName = &w.id
		return w.Client.Update(w.ctx, machine)
	}), "to name the bootstrap data in the Machine")
}

func (w *world) accessor() inframachine.Accessor { return inframachine.At(w.Contract) }

func (w *world) providerID(object *unstructured.Unstructured) string {
	if object == nil {
		return ""
	}
	id, _ := w.accessor().ProviderID(object)
	w.meet(id)
	return id
}

func (w *world) provisioned(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	value, _ := w.accessor().Provisioned(object)
	return value
}

// awaitProvisioned waits until the machine is provisioned, and its provider ID known.
func (w *world) awaitProvisioned() bool {
	return w.await(w.Timeouts.Provision.Duration, func(o *unstructured.Unstructured) bool { return w.provisioned(o) && w.providerID(o) != "" })
}

// mustBeProvisioned ends the case if it does not come so far: other rules say that it must.
func (w *world) mustBeProvisioned() {
	if !w.awaitProvisioned() {
		w.stop("no machine was provisioned within %s, so that this cannot be seen", w.Timeouts.Provision.Duration)
	}
}

// machines are those of the infrastructure that belong to the object of the case. Without a probe it ends the case.
func (w *world) machines() []probe.Machine {
	if w.Probe == nil {
		w.stop(noProbe)
	}
	list, err := w.Probe.Machines(w.ctx)
	if err != nil {
		w.stop("the probe failed: %v", err)
	}
	id := w.providerID(w.object())
	list = slices.DeleteFunc(list, func(m probe.Machine) bool { return !m.Belongs(id, append(w.uids, w.id)...) })
	slices.SortFunc(list, func(a, b probe.Machine) int { return strings.Compare(a.ID, b.ID) })
	for _, m := range list {
		w.meet(m.ID)
	}
	return list
}

// named says which machines those are.
func named(machines []probe.Machine) string {
	if len(machines) == 0 {
		return "no machine"
	}
	noun := "machines"
	if len(machines) == 1 {
		noun = "machine"
	}
	return fmt.Sprintf("%d %s: %s", len(machines), noun, strings.Join(ids(machines), ", "))
}

// made says what shows that something was made for the object; empty if nothing does.
func (w *world) made() string {
	if id := w.providerID(w.object()); id != "" {
		return "spec.providerID is " + id
	}
	if w.provisioned(w.object()) {
		return w.accessor().ProvisionedPath().String() + " is true"
	}
	if w.Probe != nil {
		if machines := w.machines(); len(machines) > 0 {
			return "the infrastructure has " + named(machines)
		}
	}
	return ""
}

// basis says how it was seen that nothing was made.
func (w *world) basis() string {
	if w.Probe == nil {
		return "in the object; there is no probe of the infrastructure"
	}
	return "in the object and on the infrastructure"
}

// touch changes what a provider may watch but must not act upon: annotations of the object and the Machine.
func (w *world) touch() {
	value := fmt.Sprint(time.Now().UnixNano())
	w.annotate(touched, &value)
	w.must(retry(w.ctx, func() error {
		machine := &clusterv1.Machine{}
		if err := w.Client.Get(w.ctx, w.key(), machine); err != nil {
			return err
		}
		if machine.Annotations == nil {
			machine.Annotations = map[string]string{}
		}
		machine.Annotations[touched] = value
		return w.Client.Update(w.ctx, machine)
	}), "to annotate the Machine")
}

// touched is an annotation that means nothing.
const touched = "conformance.millwright.dev/touched"
