package core

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

func hostileCases() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Hostile/AnothersInfrastructure", []rules.ID{"CO-050"}, anothersInfrastructure),
		scenario("Hostile/TwoMachinesOneProviderID", []rules.ID{"CO-051"}, twoMachines),
		scenario("Hostile/NodeClaimsAnothersProviderID", []rules.ID{"CO-052"}, twoNodes),
		scenario("Hostile/NodeCannotBeWritten", []rules.ID{"CO-053"}, refusedNode),
		scenario("Hostile/FactRefused", []rules.ID{"CO-054"}, refusedFact),
		scenario("Hostile/WrongType", []rules.ID{"CO-055"}, wrongType),
		scenario("Watch", []rules.ID{"CO-056"}, watched),
	}
}

func anothersInfrastructure(w *world) {
	p := w.booted()
	other := &place{machine: &clusterv1.Machine{ObjectMeta: w.meta(w.id + "-thief")}}
	other.machine.Spec.ClusterName = w.id
	other.machine.Spec.InfrastructureRef = w.ref(machineKind, w.id)
	name := w.id + "-data"
	other.machine.Spec.Bootstrap.DataSecretName = &name
	w.create(other.machine)
	deviation := w.quiet(func() string {
		m := w.read(other)
		return when(m.Spec.ProviderID != "" || m.Status.NodeRef.Name != "",
			fmt.Sprintf("the Machine that refers to it has provider ID %q and Node %q", m.Spec.ProviderID, m.Status.NodeRef.Name))
	})
	w.remove(other.machine)
	deviation += w.within(w.Timeouts.React.Duration, func() string { return w.gone(other.machine) })
	deviation += w.quiet(func() string { return w.staying(p.infra) + w.staying(p.node) + w.staying(p.machine) })
	w.check("CO-050", "the Machine copies nothing, can be deleted, and does not touch what belongs to another", deviation)
}

func twoMachines(w *world) {
	p := w.booted()
	other := w.machine(w.id + "-twin")
	w.report(other.config, fields{"dataSecretName": w.id + "-data"})
	w.report(other.config, w.dataCreated(true))
	w.settle(other.infra, fields{"providerID": w.providerID(w.id)})
	w.report(other.infra, w.provisioned(true))
	// A core may refuse the second ID, or the Node.
	_ = w.quiet(func() string { return when(w.read(other).Spec.ProviderID != "", "it has the ID") })
	w.check("CO-051", "one of the Machines has the Node, and not both", w.quiet(func() string {
		first, second := w.read(p).Status.NodeRef.Name, w.read(other).Status.NodeRef.Name
		return when(first == second && first != "", "both Machines have Node "+first)
	}))
}

func twoNodes(w *world) {
	p := w.booted()
	w.node(w.id+"-liar", w.providerID(w.id))
	w.check("CO-052", "the Machine keeps its Node", w.quiet(func() string { return w.running(p) }))
}

// refusedNode creates an admission policy that refuses all updates of metadata and spec of one Node.
func refusedNode(w *world) {
	w.open()
	p := w.machine(w.id, func(m *clusterv1.Machine) { m.Labels = map[string]string{nodeRole: "a"} })
	w.provide(p)
	w.need(w.soon(func() string { return when(w.read(p).Spec.ProviderID == "", "the Machine has no provider ID") }))
	policy, binding := w.refusal()
	for _, object := range []client.Object{policy, binding} {
		w.create(object)
		defer func() { _ = w.Client.Delete(context.WithoutCancel(w.ctx), object) }() // Also when the run is interrupted.
	}
	probe := w.node(w.id+"-probe", "")
	w.need(w.soon(func() string {
		probe.Labels["changed"] = "yes"
		return when(w.Client.Update(w.ctx, probe, client.DryRunAll) == nil, "the API server does not apply the policy")
	}))
	p.node = w.node(w.id, w.providerID(w.id))
	other := w.machine(w.id + "x")
	w.provide(other)
	deviation := w.soon(func() string {
		m := w.read(p)
		reported := conditionsContain(m.Status.Conditions, "refused-by-conformance")
		return when(m.Status.NodeRef.Name == "" || !reported,
			fmt.Sprintf("the Machine has Node %q, and a condition that reports what was refused: %t", m.Status.NodeRef.Name, reported))
	})
	deviation += w.soon(func() string { return when(w.read(other).Spec.ProviderID == "", "another Machine does not continue") })
	w.check("CO-053", "the Machine has its Node, a condition reports what was refused, and another Machine continues", deviation)
}

func (w *world) refusal() (*admissionregistrationv1.ValidatingAdmissionPolicy, *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: w.id}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Update},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"nodes"}},
		}}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{
		{Expression: "!object.metadata.name.startsWith('" + w.id + "')", Message: "refused-by-conformance"},
	}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: w.id}}
	binding.Spec.PolicyName = w.id
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	return policy, binding
}

// conditionsContain reports whether the message of a condition contains all texts.
func conditionsContain(conditions []metav1.Condition, texts ...string) bool {
	for _, c := range conditions {
		all := true
		for _, text := range texts {
			all = all && strings.Contains(c.Message, text)
		}
		if all {
			return true
		}
	}
	return false
}

func refusedFact(w *world) {
	w.open()
	p := w.machine(w.id)
	long := strings.Repeat("x", 300)
	w.report(p.infra, fields{"addresses": []any{
		fields{"type": "InternalIP", "address": "192.0.2.7"}, fields{"type": "InternalDNS", "address": long},
	}})
	w.boot(p)
	deviation := w.soon(func() string { return w.running(p) })
	deviation += w.soon(func() string {
		reported := conditionsContain(w.read(p).Status.Conditions, "address")
		return when(!reported, "no condition mentions the address")
	})
	w.report(p.infra, fields{"addresses": []any{fields{"type": "InternalIP", "address": "192.0.2.7"}}})
	deviation += w.soon(func() string {
		m := w.read(p)
		list := m.Status.Conditions
		return w.hasAddress(m) + when(conditionsContain(list, long[:100]) || conditionsContain(list, "status.addresses"),
			"a condition still mentions the address, which is corrected")
	})
	w.check("CO-054", "a condition reports the refused address until it is corrected, and the Machine has all other values", deviation)
}

func wrongType(w *world) {
	w.open()
	p, other := w.machine(w.id), w.machine(w.id+"x")
	w.report(p.infra, fields{"addresses": "192.0.2.7"})
	w.provide(p)
	w.boot(other)
	deviation := w.soon(func() string {
		reported := conditionsContain(w.read(p).Status.Conditions, w.id, "status.addresses")
		return when(!reported, "no condition names the object and status.addresses")
	})
	deviation += w.soon(func() string { return w.running(other) })
	w.report(p.infra, fields{"addresses": []any{fields{"type": "InternalIP", "address": "192.0.2.7"}}})
	deviation += w.soon(func() string {
		m := w.read(p)
		reported := conditionsContain(m.Status.Conditions, "status.addresses")
		return w.hasAddress(m) + when(reported, "a condition still names status.addresses, which is corrected")
	})
	w.check("CO-055", "a condition names object and path until the field is corrected, and another Machine continues", deviation)
}

// hasAddress returns a deviation if a Machine lacks the address that its infrastructure machine now has.
func (w *world) hasAddress(m *clusterv1.Machine) string {
	for _, address := range m.Status.Addresses {
		if address.Address == "192.0.2.7" {
			return ""
		}
	}
	return fmt.Sprintf("status.addresses is %v; ", m.Status.Addresses)
}

// changesWatched is the number of changes in the case watched.
const changesWatched = 5

// watched changes an object several times in sequence. A core that polls sees each change a whole period after the previous one; the
// median ignores a computer that was busy for a moment.
func watched(w *world) {
	p := w.booted()
	w.need(w.quiet(func() string { return w.running(p) }))
	limit := w.Timeouts.React.Duration / 5
	times, deviation := make([]time.Duration, changesWatched), ""
	for i := range times {
		message := fmt.Sprintf("the machine is gone: %d", i)
		w.report(p.infra, w.condition("Ready", "False", "Gone", message))
		begun := time.Now()
		deviation += w.soon(func() string {
			return mirrored(w.read(p).Status.Conditions, "InfrastructureReady", metav1.ConditionFalse, message)
		})
		times[i] = time.Since(begun)
	}
	slices.Sort(times)
	if median := times[changesWatched/2]; deviation == "" && median > limit {
		deviation = fmt.Sprintf("half of %d changes were seen after %s or more, as by polling", changesWatched, median.Round(time.Millisecond))
	}
	w.check("CO-056", fmt.Sprintf("changes in sequence are seen, half of them within %s each", limit), deviation)
}
