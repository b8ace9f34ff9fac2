package core

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/utils/ptr"
	clusterv1 "sigs.k8s.io/cluster-api/api/core/v1beta2"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

func machineCases() []conformance.Case[*Env] {
	return []conformance.Case[*Env]{
		scenario("Machine/Owners", []rules.ID{"CO-003", "CO-004", "CO-005", "CO-006"}, machineOwners),
		scenario("Machine/Provisioning", []rules.ID{"CO-001", "CO-007", "CO-008", "CO-011", "CO-016"}, machineProvisioning),
		scenario("Machine/Facts", []rules.ID{"CO-009", "CO-010"}, machineFacts),
		scenario("Machine/BothLabels", []rules.ID{"CO-002"}, machineBothLabels),
		scenario("Machine/Conditions", []rules.ID{"CO-012", "CO-013"}, machineConditions),
		scenario("Machine/BareCondition", []rules.ID{"CO-014"}, machineBareCondition),
		scenario("Machine/Failure", []rules.ID{"CO-015"}, machineFailure),
	}
}

func machineOwners(w *world) {
	w.open()
	p := w.machine(w.id)
	owned := w.check("CO-003", "the Machine is the controller owner of the infrastructure machine",
		w.soon(func() string { return w.owned(p.infra, p.machine) }))
	owned = w.check("CO-004", "the Machine is the controller owner of the bootstrap config",
		w.soon(func() string { return w.owned(p.config, p.machine) })) && owned
	labels := func() string {
		if deviation := w.labelled(p.infra); deviation != "" {
			return "infrastructure machine: " + deviation
		}
		if deviation := w.labelled(p.config); deviation != "" {
			return "bootstrap config: " + deviation
		}
		return ""
	}
	labelled := w.check("CO-005", "both have the label with the name of the Cluster", w.soon(labels))
	if !owned || !labelled {
		w.stop("owners or label were missing, so that they could not be removed")
	}
	lost := fields{"metadata": fields{"ownerReferences": nil, "labels": fields{clusterv1.ClusterNameLabel: nil}}}
	w.must(w.merge(p.infra, lost, false), "to remove the owner")
	w.must(w.merge(p.config, lost, false), "to remove the owner")
	w.check("CO-006", "owners and label are restored", w.soon(func() string {
		for _, deviation := range []string{w.owned(p.infra, p.machine), w.owned(p.config, p.machine), labels()} {
			if deviation != "" {
				return deviation
			}
		}
		return ""
	}))
}

func machineProvisioning(w *world) {
	w.open()
	p := w.machine(w.id)
	w.need(w.soon(func() string { return w.owned(p.infra, p.machine) }))
	w.report(p.config, fields{"dataSecretName": "data-" + w.id})
	w.settle(p.infra, fields{"providerID": w.providerID(w.id)})
	booted, notRead := w.bootstrapData(p)
	provisioned, alsoNotRead := w.provisionedMachine(p)
	w.check("CO-001", "the core reads the fields of contract "+string(w.Contract), notRead+alsoNotRead)
	if !booted || !provisioned {
		w.stop("the Machine was not provisioned")
	}
	w.report(p.infra, w.provisioned(false))
	w.report(p.config, w.dataCreated(false))
	w.check("CO-011", "the Machine stays provisioned when providers set the fields back to false", w.quiet(func() string {
		now := w.read(p).Status.Initialization
		if !ptr.Deref(now.InfrastructureProvisioned, false) || !ptr.Deref(now.BootstrapDataSecretCreated, false) {
			return fmt.Sprintf("initialization is %+v", now)
		}
		return ""
	}))
	w.untouched(p)
}

// bootstrapData reports the data as the provider does, and returns how the Machine differs afterwards.
func (w *world) bootstrapData(p *place) (kept bool, late string) {
	dataName := func() string { return ptr.Deref(w.read(p).Spec.Bootstrap.DataSecretName, "") }
	early := w.quiet(func() string {
		if dataName() != "" || ptr.Deref(w.read(p).Status.Initialization.BootstrapDataSecretCreated, false) {
			return "the Machine has the name before the provider reports the Secret"
		}
		return ""
	})
	w.report(p.config, w.dataCreated(true))
	late = w.soon(func() string {
		if dataName() != "data-"+w.id || !ptr.Deref(w.read(p).Status.Initialization.BootstrapDataSecretCreated, false) {
			return fmt.Sprintf("spec.bootstrap.dataSecretName is %q, initialization %+v", dataName(), w.read(p).Status.Initialization)
		}
		return ""
	})
	return w.check("CO-007", "the Machine gets the name of its bootstrap data once they exist, and not before", early+late), late
}

// provisionedMachine does the same with the machine.
func (w *world) provisionedMachine(p *place) (kept bool, late string) {
	early := w.quiet(func() string {
		if m := w.read(p); m.Spec.ProviderID != "" || ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false) {
			return "the Machine has the provider ID before the provider reports the machine"
		}
		return ""
	})
	w.report(p.infra, w.provisioned(true))
	late = w.soon(func() string {
		if m := w.read(p); m.Spec.ProviderID != w.providerID(w.id) || !ptr.Deref(m.Status.Initialization.InfrastructureProvisioned, false) {
			return fmt.Sprintf("spec.providerID is %q, initialization %+v", m.Spec.ProviderID, m.Status.Initialization)
		}
		return ""
	})
	return w.check("CO-008", "the Machine gets the provider ID once the machine is provisioned, and not before", early+late), late
}

// untouched checks that the core has written neither spec nor status of the provider's objects.
func (w *world) untouched(p *place) {
	created := w.dataCreated(false)
	created["dataSecretName"] = "data-" + w.id
	spec := fields{"size": "small", "providerID": w.providerID(w.id)}
	deviation := w.differs("infrastructure machine", p.infra, spec, w.provisioned(false)) +
		w.differs("bootstrap config", p.config, fields{"size": "small"}, created)
	expected := "spec, status and finalizers of the provider's objects are what the provider wrote, and no one else has written them"
	w.check("CO-016", expected, deviation)
}

// differs returns what differs in an object of the suite from what the suite has written, or was written by others as well: that would
// revert concurrent writes of a provider.
func (w *world) differs(what string, object *unstructured.Unstructured, spec, status fields) string {
	current, deviation := w.current(object), ""
	if got := current.Object["spec"]; fmt.Sprint(got) != fmt.Sprint(spec) {
		deviation = fmt.Sprintf("the spec of the %s is %v; ", what, got)
	}
	if got := current.Object["status"]; fmt.Sprint(got) != fmt.Sprint(status) {
		deviation += fmt.Sprintf("the status of the %s is %v; ", what, got)
	}
	if finalizers := current.GetFinalizers(); !slices.Equal(finalizers, []string{finalizer}) {
		deviation += fmt.Sprintf("the %s has the finalizers %v; ", what, finalizers)
	}
	return deviation + othersWrote(what, current.GetManagedFields())
}

// othersWrote returns which of a provider's fields another manager has written, even with the same value.
func othersWrote(what string, managed []metav1.ManagedFieldsEntry) string {
	deviation := ""
	for _, entry := range managed {
		if entry.Manager == userAgent || entry.FieldsV1 == nil {
			continue
		}
		for _, field := range []string{"spec", "status", "finalizers"} {
			if strings.Contains(entry.FieldsV1.GetRawString(), `"f:`+field+`"`) {
				deviation += fmt.Sprintf("%s has written %s of the %s; ", entry.Manager, field, what)
			}
		}
	}
	return deviation
}

func machineFacts(w *world) {
	w.open()
	p := w.machine(w.id)
	addresses := []any{fields{"type": "InternalIP", "address": "192.0.2.7"}, fields{"type": "Hostname", "address": w.id}}
	w.report(p.infra, fields{"addresses": addresses})
	if w.Contract == version.V1Beta1 {
		w.settle(p.infra, fields{"failureDomain": "zone-b"})
	} else {
		w.report(p.infra, fields{"failureDomain": "zone-b"})
	}
	w.provide(p)
	w.check("CO-009", "the Machine has the addresses", w.soon(func() string {
		got := w.read(p).Status.Addresses
		if len(got) != 2 || got[0].Address != "192.0.2.7" || got[1].Address != w.id {
			return fmt.Sprintf("status.addresses are %v", got)
		}
		return ""
	}))
	w.check("CO-010", "the Machine has the failure domain", w.soon(func() string {
		m := w.read(p)
		// The older contract has it in the spec.
		older := w.Contract == version.V1Beta1 && m.Spec.FailureDomain == "zone-b"
		if m.Status.FailureDomain != "zone-b" && !older {
			return fmt.Sprintf("status.failureDomain is %q, spec.failureDomain %q", m.Status.FailureDomain, m.Spec.FailureDomain)
		}
		return ""
	}))
}

func machineBothLabels(w *world) {
	w.open()
	p := w.machine(w.id)
	w.need(w.soon(func() string { return w.owned(p.infra, p.machine) }))
	w.report(p.config, fields{"dataSecretName": w.id, "ready": true})
	w.settle(p.infra, fields{"providerID": w.providerID(w.id)})
	w.report(p.infra, fields{"ready": true})
	w.check("CO-002", "status.ready of v1beta1 is ignored for a kind that has v1beta2 too", w.quiet(func() string {
		if m := w.read(p); m.Spec.Bootstrap.DataSecretName != nil || m.Spec.ProviderID != "" {
			return "the Machine continues because of status.ready"
		}
		return ""
	}))
}

func mirrored(conditions []metav1.Condition, name string, status metav1.ConditionStatus, message string) string {
	c := meta.FindStatusCondition(conditions, name)
	if c == nil {
		return "there is no condition " + name
	}
	if c.Status != status || c.Message != message && message != "" {
		return fmt.Sprintf("condition %s is %s %s %q", name, c.Status, c.Reason, c.Message)
	}
	return ""
}

func machineConditions(w *world) {
	w.open()
	p := w.machine(w.id)
	w.report(p.infra, w.condition("Ready", "False", "QuotaExceeded", "no quota is left"))
	w.report(p.config, w.condition("Ready", "False", "NoTemplate", "there is no template"))
	infra := w.soon(func() string {
		return mirrored(w.read(p).Status.Conditions, "InfrastructureReady", metav1.ConditionFalse, "no quota is left")
	})
	config := w.soon(func() string {
		return mirrored(w.read(p).Status.Conditions, "BootstrapConfigReady", metav1.ConditionFalse, "there is no template")
	})
	w.report(p.infra, w.condition("Ready", "True", "Running", ""))
	w.report(p.config, w.condition("Ready", "True", "Created", ""))
	w.provide(p)
	infra += w.soon(func() string {
		return mirrored(w.read(p).Status.Conditions, "InfrastructureReady", metav1.ConditionTrue, "")
	})
	config += w.soon(func() string {
		return mirrored(w.read(p).Status.Conditions, "BootstrapConfigReady", metav1.ConditionTrue, "")
	})
	w.check("CO-012", "InfrastructureReady mirrors Ready of the infrastructure machine, False and True", infra)
	w.check("CO-013", "BootstrapConfigReady mirrors Ready of the bootstrap config, False and True", config)
}

func machineBareCondition(w *world) {
	w.open()
	p := w.machine(w.id)
	w.provide(p)
	w.need(w.soon(func() string {
		return mirrored(w.read(p).Status.Conditions, "InfrastructureReady", metav1.ConditionTrue, "")
	}))
	w.report(p.infra, fields{"conditions": []any{fields{"type": "Ready", "status": "False"}}})
	w.check("CO-014", "a condition with only type and status is mirrored", w.soon(func() string {
		return mirrored(w.read(p).Status.Conditions, "InfrastructureReady", metav1.ConditionFalse, "")
	}))
}

func machineFailure(w *world) {
	if w.Contract != version.V1Beta1 {
		w.stop("only contract v1beta1 has terminal failures")
	}
	w.open()
	p := w.machine(w.id)
	w.report(p.infra, fields{"failureReason": "CreateError", "failureMessage": "the image is broken"})
	shown := w.soon(func() string {
		deprecated := w.read(p).Status.Deprecated
		//nolint:staticcheck // it is what the rule is about
		if deprecated == nil || deprecated.V1Beta1 == nil || ptr.Deref(deprecated.V1Beta1.FailureMessage, "") == "" {
			return "status.deprecated.v1beta1 has no failureMessage"
		}
		return ""
	})
	w.boot(p)
	continues := w.soon(func() string { return w.running(p) })
	w.check("CO-015", "the failure is reported, and the Machine continues when the provider does", shown+continues)
}
