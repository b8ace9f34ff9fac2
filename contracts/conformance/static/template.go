package static

import (
	"fmt"
	"slices"
	"strings"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

func templateCases() []conformance.Case[*Bundle] {
	return []conformance.Case[*Bundle]{
		look("Templates/InfraMachine", func(t *conformance.T, b *Bundle) {
			b.templates(t, rules.InfraMachine, "IT-001", "IT-002", "IT-003")
		}, "IT-001", "IT-002", "IT-003"),
		look("Templates/BootstrapConfig", func(t *conformance.T, b *Bundle) {
			b.templates(t, rules.BootstrapConfig, "BT-001", "BT-002", "BT-003")
		}, "BT-001", "BT-002", "BT-003"),
		look("Templates/InfraCluster", func(t *conformance.T, b *Bundle) { b.classTemplates(t, rules.InfraCluster, "IC-012") }, "IC-012"),
		look("Templates/ControlPlane", func(t *conformance.T, b *Bundle) { b.classTemplates(t, rules.ControlPlane, "CP-019") }, "CP-019"),
		look("Templates/Capacity", capacity, "IT-007", "IT-008", "IT-009"),
	}
}

// template finds the template of a kind and its schema; found is true if there is a CRD, served if it serves a version of the contract.
func (b *Bundle) template(c crd) (s schemaPart, found, served bool) {
	template, found := b.find(c.group(), c.kind()+"Template")
	if !found {
		return nil, false, false
	}
	version, served := template.contractVersion(b.contract)
	return schemaOf(version), true, served
}

func (b *Bundle) templates(t *conformance.T, role rules.Subject, exists, spec, meta rules.ID) {
	b.schemas(t, exists, role, func(c crd, s schemaPart) {
		name := c.kind() + "Template"
		template, found, served := b.template(c)
		seen := "no CRD of that kind"
		if found {
			seen = "a CRD of the kind " + name
		}
		check(t, exists, c.kind(), found, "a kind "+name, seen)
		if !found || !served {
			t.Skip(spec, c.kind(), "there is no %s of contract %s", name, b.contract)
			t.Skip(meta, c.kind(), "there is no %s of contract %s", name, b.contract)
			return
		}
		kept, detail := sameSpec(s, template)
		check(t, spec, c.kind(), kept, "spec.template.spec, an object with fields of the kind's spec alone", detail)
		missing, wrong := compare(template, []field{
			{"spec.template.metadata.labels", "object"}, {"spec.template.metadata.annotations", "object"},
		})
		check(t, meta, c.kind(), len(missing)+len(wrong) == 0, "spec.template.metadata with labels and annotations, objects",
			orElse(append(missing, wrong...), "missing or of another type: ", "both"))
	})
}

func orElse(list []string, before, otherwise string) string {
	if len(list) == 0 {
		return otherwise
	}
	return before + strings.Join(list, ", ")
}

// sameSpec compares the spec within a template with that of the kind.
func sameSpec(kind, template schemaPart) (kept bool, seen string) {
	inner, found := template.at("spec.template.spec")
	if !found || inner.kind() != "object" {
		return false, "no such object"
	}
	spec, _ := kind.at("spec")
	extra := slices.DeleteFunc(inner.names(), func(name string) bool { return slices.Contains(spec.names(), name) })
	return len(extra) == 0, orElse(extra, "the kind lacks ", fmt.Sprintf("%d fields, all of the kind", len(inner.names())))
}

func (b *Bundle) classTemplates(t *conformance.T, role rules.Subject, id rules.ID) {
	b.schemas(t, id, role, func(c crd, _ schemaPart) {
		template, found, served := b.template(c)
		inner, _ := template.at("spec.template.spec")
		seen := "no such kind"
		switch {
		case found && !served:
			seen = "it has no version of contract " + b.contract
		case found:
			seen = "spec.template.spec " + inner.kind()
		}
		check(t, id, c.kind(), inner.kind() == "object", "a kind "+c.kind()+"Template with spec.template.spec, an object", seen)
	})
}

// capacity checks what an autoscaler reads from a template without machines.
func capacity(t *conformance.T, b *Bundle) {
	for id, want := range map[rules.ID]field{
		"IT-007": {"status.capacity.{}", "integer or string"}, "IT-008": {"status.nodeInfo.architecture", "string"},
		"IT-009": {"status.nodeInfo.operatingSystem", "string"},
	} {
		b.schemas(t, id, rules.InfraMachine, func(c crd, _ schemaPart) {
			template, _, _ := b.template(c)
			found, ok := template.at(want.path)
			if _, holder := template.at(strings.TrimSuffix(want.path, ".{}")); !holder {
				t.Skip(id, c.kind(), "the template has no %s; it is optional", want.path)
				return
			}
			kept := ok && found.kind() == want.kind
			if values, limited := found["enum"].([]any); limited && id == "IT-008" {
				// The empty value means that it is not known yet.
				known := []string{"amd64", "arm64", "s390x", "ppc64le", ""}
				kept = kept && !slices.ContainsFunc(values, func(v any) bool { return !slices.Contains(known, fmt.Sprint(v)) })
			}
			check(t, id, c.kind(), kept, want.path+" "+want.kind, fmt.Sprintf("%s %s %v", want.path, found.kind(), found["enum"]))
		})
	}
}
