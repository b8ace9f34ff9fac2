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

// needs are the preconditions of an infrastructure machine.
type needs struct{ cluster, infrastructure, data, owner bool }

var all = needs{true, true, true, true}

// noProbe is the reason for skipping rules that need the infrastructure's view.
const noProbe = "it needs the infrastructure's view: set a probe"

// infra creates an infrastructure machine with the preconditions in has; it returns the Machine.
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
	machine := w.machine(w.reference(), w.dangling("Bootstrap"), data)
	owner := machine
	if !has.owner {
		owner = nil
	}
	w.subject(owner, annotations)
	return machine
}

// serveData sets the name of the bootstrap data in the Machine.
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
	w.recordID(id)
	return id
}

func (w *world) provisioned(object *unstructured.Unstructured) bool {
	if object == nil {
		return false
	}
	value, _ := w.accessor().Provisioned(object)
	return value
}

// awaitProvisioned waits until the machine is provisioned and has a provider ID.
func (w *world) awaitProvisioned() bool {
	return w.await(w.Timeouts.Provision.Duration, func(o *unstructured.Unstructured) bool { return w.provisioned(o) && w.providerID(o) != "" })
}

// mustBeProvisioned ends the case if the machine is not provisioned: other rules require that.
func (w *world) mustBeProvisioned() {
	if !w.awaitProvisioned() {
		w.stop("no machine was provisioned within %s, so that this cannot be verified", w.Timeouts.Provision.Duration)
	}
}

// machines returns those of the infrastructure that belong to the object of the case. Without a probe it ends the case.
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
		w.recordID(m.ID)
	}
	return list
}

// named lists machines.
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

// trace returns what shows that something was created for the object; empty if nothing does.
func (w *world) trace() string {
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

// basis is what trace is based on.
func (w *world) basis() string {
	if w.Probe == nil {
		return "seen in the object; there is no probe of the infrastructure"
	}
	return "seen in the object and in the infrastructure"
}

// touch changes what a provider may watch but must not act on: annotations of the object and the Machine.
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

// touched is an annotation without meaning.
const touched = "conformance.millwright.dev/touched"
