package core

import (
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

func pauseCases() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Pause/Cluster", []rules.ID{"CO-027", "CO-058"}, pauseCluster),
		scenario("Pause/Machine", []rules.ID{"CO-028"}, pauseMachine),
		scenario("Pause/Conditions", []rules.ID{"CO-029"}, pauseConditions),
		scenario("Move", []rules.ID{"CO-049"}, moved),
	}
}

func paused(c *clusterv1.Cluster) { c.Spec.Paused = ptr.To(true) }

// as returns a deviation if an object has changed since a version, or is deleted.
func (w *world) as(object *unstructured.Unstructured, version string) string {
	now := w.current(object)
	if now.GetResourceVersion() != version || now.GetDeletionTimestamp() != nil {
		return fmt.Sprintf("%s was written or deleted: it has the metadata %v", object.GetKind(), now.Object["metadata"])
	}
	return ""
}

func (w *world) untouchedWhile(objects ...*unstructured.Unstructured) func() string {
	versions := map[*unstructured.Unstructured]string{}
	for _, object := range objects {
		versions[object] = w.current(object).GetResourceVersion()
	}
	return func() string {
		for _, object := range objects {
			if deviation := w.as(object, versions[object]); deviation != "" {
				return deviation
			}
		}
		return ""
	}
}

func pauseCluster(w *world) {
	s := w.open(paused)
	p := w.machine(w.id)
	const untouched = "nothing is written or deleted while the Cluster is paused"
	deviation := w.quiet(w.untouchedWhile(p.infra, p.config, s.infra, s.plane))
	if deviation != "" {
		// Recorded at once, since the case may end early.
		w.check("CO-027", untouched, deviation)
	}
	w.change(s.cluster, func() { s.cluster.Spec.Paused = ptr.To(false) })
	owned := func() string { return w.owned(p.infra, p.machine) }
	idle := w.soon(owned)
	if idle != "" {
		// A core that misses the end of the pause gets a change of the Machine, so that its behaviour during pauses can still be verified.
		w.touch(p)
		w.need(w.soon(owned))
	}
	w.boot(p)
	w.need(w.soon(func() string { return w.running(p) }))
	w.change(s.cluster, func() { s.cluster.Spec.Paused = ptr.To(true) })
	// A core may still be doing what it began before the pause.
	w.need(w.soon(func() string {
		return mirrored(w.readCluster().Status.Conditions, clusterv1.PausedCondition, metav1.ConditionTrue, "")
	}))
	// Writes right after the deletion of the Machine count too.
	still := w.untouchedWhile(p.infra, p.config, s.infra, s.plane)
	w.remove(p.machine)
	if deviation == "" {
		w.check("CO-027", untouched, w.quiet(still))
	}
	w.change(s.cluster, func() { s.cluster.Spec.Paused = ptr.To(false) })
	idle += w.soon(func() string { return w.deleted(p.infra) })
	w.check("CO-058", "the core continues with the Machine once the Cluster is not paused, without another event", idle)
}

// touch causes an event by a change of a Machine without meaning.
func (w *world) touch(p *place) {
	w.change(p.machine, func() { p.machine.Annotations = map[string]string{"conformance.millwright.dev/touched": ""} })
}

func pauseMachine(w *world) {
	w.open()
	p := w.machine(w.id, func(m *clusterv1.Machine) { m.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
	const untouched = "nothing is written or deleted while the Machine is paused, and the core continues afterwards"
	deviation := w.quiet(w.untouchedWhile(p.infra, p.config))
	if deviation != "" {
		// Recorded at once, since the case may end early.
		w.check("CO-028", untouched, deviation)
		return
	}
	w.change(p.machine, func() { delete(p.machine.Annotations, clusterv1.PausedAnnotation) })
	w.need(w.soon(func() string { return w.owned(p.infra, p.machine) }))
	w.boot(p)
	w.need(w.soon(func() string { return w.running(p) }))
	w.change(p.machine, func() { p.machine.Annotations = map[string]string{clusterv1.PausedAnnotation: ""} })
	w.need(w.soon(func() string {
		return mirrored(w.read(p).Status.Conditions, clusterv1.PausedCondition, metav1.ConditionTrue, "")
	}))
	still := w.untouchedWhile(p.infra, p.config)
	w.remove(p.machine)
	deviation += w.quiet(still)
	w.change(p.machine, func() { delete(p.machine.Annotations, clusterv1.PausedAnnotation) })
	deviation += w.soon(func() string { return w.deleted(p.infra) })
	w.check("CO-028", untouched, deviation)
}

func pauseConditions(w *world) {
	s := w.open(paused)
	p := w.machine(w.id)
	both := func(status metav1.ConditionStatus) string {
		return w.soon(func() string {
			if deviation := mirrored(w.readCluster().Status.Conditions, clusterv1.PausedCondition, status, ""); deviation != "" {
				return "Cluster: " + deviation
			}
			if deviation := mirrored(w.read(p).Status.Conditions, clusterv1.PausedCondition, status, ""); deviation != "" {
				return "Machine: " + deviation
			}
			return ""
		})
	}
	deviation := both(metav1.ConditionTrue)
	w.change(s.cluster, func() { s.cluster.Spec.Paused = ptr.To(false) })
	w.check("CO-029", "Paused is True while they are paused and False afterwards", deviation+both(metav1.ConditionFalse))
}

// moved creates objects as clusterctl move does: under a paused Cluster, with specs and owners, without status.
func moved(w *world) {
	s := w.open(paused)
	w.report(s.infra, fields{"initialization": nil, "ready": nil})
	places, uids := make([]*place, 3), map[string]types.UID{}
	set := w.set(int32(len(places)))
	for i := range places {
		name := w.id + strings.Repeat("x", i)
		p := w.machine(name, func(m *clusterv1.Machine) {
			m.Spec.ProviderID = w.providerID(name)
			m.Spec.Bootstrap.DataSecretName = ptr.To(name + "-data")
			m.Labels = set.Spec.Selector.MatchLabels
			m.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(set, clusterv1.GroupVersion.WithKind("MachineSet"))}
		})
		p.node = w.node(name, w.providerID(name))
		w.settle(p.infra, fields{"providerID": w.providerID(name)})
		places[i], uids[name] = p, w.current(p.infra).GetUID()
	}
	w.change(s.cluster, func() { s.cluster.Spec.Paused = ptr.To(false) })
	deviation := w.quiet(func() (gone string) {
		for _, p := range places {
			gone += w.staying(p.infra)
		}
		return gone + w.asMany(set, len(places))
	})
	w.report(s.infra, w.provisioned(true))
	for _, p := range places {
		w.provide(p)
	}
	for _, p := range places {
		deviation += w.soon(func() string { return w.running(p) })
		if w.current(p.infra).GetUID() != uids[p.machine.Name] {
			deviation += "the infrastructure machine of " + p.machine.Name + " is a different object"
		}
	}
	deviation += w.asMany(set, len(places))
	w.check("CO-049", "each Machine has its Node again, with the same infrastructure machine, and their MachineSet creates none", deviation)
}

// asMany returns a deviation if a MachineSet has another number of Machines.
func (w *world) asMany(set *clusterv1.MachineSet, wanted int) string {
	machines := &clusterv1.MachineList{}
	err := w.Client.List(w.ctx, machines, client.InNamespace(w.Namespace), client.MatchingLabels(set.Spec.Selector.MatchLabels))
	w.must(err, "to list Machines")
	return when(len(machines.Items) != wanted, fmt.Sprintf("the MachineSet has %d Machines, not %d; ", len(machines.Items), wanted))
}
