package static

import (
	"fmt"
	"slices"
	"strings"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

// need is what a field means that is not in the schema.
type need int

const (
	// required: a missing field breaks the rule. Other fields may be missing if all fields of their rule are.
	required need = iota + 1
)

// field is a path with the type that it has; "/"-separated types are alternatives.
type field struct{ path, kind string }

// fieldRule is a rule about fields of a kind.
type fieldRule struct {
	id   rules.ID
	role rules.Subject
	// v1beta1 and v1beta2 are the fields by version of the contract; v1beta2 applies to both if v1beta1 is nil.
	v1beta1, v1beta2 []field
	need             need
	// when is a field without which the rule does not apply; an object without any field counts as absent.
	when string
}

const chosenDomain = "spec.failureDomain"

var fieldRules = []fieldRule{
	{id: "IM-002", role: rules.InfraMachine, v1beta2: []field{{"spec.providerID", "string"}}, need: required},
	{
		id: "IM-003", role: rules.InfraMachine, need: required,
		v1beta1: []field{{"status.ready", "boolean"}}, v1beta2: []field{{"status.initialization.provisioned", "boolean"}},
	},
	{
		id: "IM-004", role: rules.InfraMachine, need: required,
		v1beta2: []field{{"status.addresses.[].type", "string"}, {"status.addresses.[].address", "string"}},
	},
	{id: "IM-006", role: rules.InfraMachine, v1beta2: []field{{"status.interruptible", "boolean"}}},
	{
		id: "IM-008", role: rules.InfraMachine, v1beta2: []field{{"status.failureReason", "string"}, {"status.failureMessage", "string"}},
	},
	{id: "IM-015", role: rules.InfraMachine, v1beta2: []field{{chosenDomain, "string"}}},
	{
		id: "BC-002", role: rules.BootstrapConfig, need: required,
		v1beta1: []field{{"status.ready", "boolean"}}, v1beta2: []field{{"status.initialization.dataSecretCreated", "boolean"}},
	},
	{id: "BC-003", role: rules.BootstrapConfig, v1beta2: []field{{"status.dataSecretName", "string"}}, need: required},
	{
		id: "BC-005", role: rules.BootstrapConfig, v1beta2: []field{{"status.failureReason", "string"}, {"status.failureMessage", "string"}},
	},
	{id: "BC-007", role: rules.BootstrapConfig, v1beta2: []field{{"status.nodeName", "string"}}},
	{
		id: "IC-001", role: rules.InfraCluster, need: required,
		v1beta1: []field{{"status.ready", "boolean"}}, v1beta2: []field{{"status.initialization.provisioned", "boolean"}},
	},
	{id: "IC-002", role: rules.InfraCluster, v1beta2: endpoint},
	{
		id: "IC-004", role: rules.InfraCluster, when: "status.failureDomains",
		v1beta1: []field{{"status.failureDomains.{}.controlPlane", "boolean"}, {"status.failureDomains.{}.attributes.{}", "string"}},
		v1beta2: []field{
			{"status.failureDomains.[].name", "string"}, {"status.failureDomains.[].controlPlane", "boolean"},
			{"status.failureDomains.[].attributes.{}", "string"},
		},
	},
	{
		id: "IC-005", role: rules.InfraCluster, v1beta2: []field{{"status.failureReason", "string"}, {"status.failureMessage", "string"}},
	},
}

var endpoint = []field{{"spec.controlPlaneEndpoint.host", "string"}, {"spec.controlPlaneEndpoint.port", "integer"}}

func fieldCases() []conformance.Case[*Bundle] {
	var cases []conformance.Case[*Bundle]
	for _, rule := range slices.Concat(fieldRules, planeRules) {
		cases = append(cases, look("Fields/"+string(rule.id), rule.look, rule.id))
	}
	domain := func(t *conformance.T, b *Bundle) { eitherOf(t, b, "IM-005", "status.failureDomain", chosenDomain) }
	return append(cases,
		look("Fields/FailureDomain", domain, "IM-005"),
		look("Fields/AddressTypes", addressTypes, "IM-014"))
}

// schemas calls visit with the schema of each kind of a role, in the version of the contract that the case verifies. A kind that does
// not claim this version has none.
func (b *Bundle) schemas(t *conformance.T, id rules.ID, role rules.Subject, visit func(c crd, s schemaPart)) {
	kinds := b.kinds(role)
	if len(kinds) == 0 {
		t.Skip(id, "", "there is no kind %s among the components", role)
	}
	for _, c := range kinds {
		if version, found := c.contractVersion(b.contract); found {
			visit(c, schemaOf(version))
			continue
		}
		t.Skip(id, c.kind(), "no API version labelled %s%s is served", contractPrefix, b.contract)
	}
}

func (r fieldRule) look(t *conformance.T, b *Bundle) {
	fields := r.v1beta2
	if b.contract == rules.V1Beta1 && r.v1beta1 != nil {
		fields = r.v1beta1
	}
	b.schemas(t, r.id, r.role, func(c crd, s schemaPart) {
		if part, found := s.at(r.when); r.when != "" && (!found || part.placeholder()) {
			t.Skip(r.id, c.kind(), "the kind has no field %s, or an empty one", r.when)
			return
		}
		missing, wrong := compare(s, fields)
		var names []string
		for _, f := range fields {
			names = append(names, f.path+" "+f.kind)
		}
		expected := strings.Join(names, ", ")
		switch {
		case len(wrong) > 0:
			check(t, r.id, c.kind(), false, expected, strings.Join(wrong, ", "))
		case len(missing) == 0:
			t.Pass(r.id, c.kind(), "%s", expected)
		case len(missing) < len(fields) || r.need == required || r.when != "":
			check(t, r.id, c.kind(), false, expected, "no "+strings.Join(missing, ", no "))
		default:
			t.Skip(r.id, c.kind(), "the kind has no %s; it is optional", strings.Join(missing, " and no "))
		}
	})
}

// compare returns the fields that are not in the schema, and those of another type.
func compare(s schemaPart, fields []field) (missing, wrong []string) {
	for _, f := range fields {
		found, ok := s.at(f.path)
		switch {
		case !ok:
			missing = append(missing, f.path)
		case !slices.Contains(strings.Split(f.kind, "/"), found.kind()):
			wrong = append(wrong, fmt.Sprintf("%s %s", f.path, found.kind()))
		}
	}
	return missing, wrong
}

// eitherOf looks for a string in one of two places.
func eitherOf(t *conformance.T, b *Bundle, id rules.ID, first, second string) {
	b.schemas(t, id, rules.InfraMachine, func(c crd, s schemaPart) {
		for _, path := range []string{first, second} {
			if found, ok := s.at(path); ok {
				check(t, id, c.kind(), found.kind() == "string", path+" string", path+" "+found.kind())
				return
			}
		}
		t.Skip(id, c.kind(), "the kind has neither %s nor %s; they are optional", first, second)
	})
}

func addressTypes(t *conformance.T, b *Bundle) {
	known := []string{"Hostname", "ExternalIP", "InternalIP", "ExternalDNS", "InternalDNS"}
	b.schemas(t, "IM-014", rules.InfraMachine, func(c crd, s schemaPart) {
		found, ok := s.at("status.addresses.[].type")
		values, limited := found["enum"].([]any)
		if !ok || !limited {
			t.Skip("IM-014", c.kind(), "the schema does not limit status.addresses[].type")
			return
		}
		foreign := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return slices.Contains(known, fmt.Sprint(v)) })
		check(t, "IM-014", c.kind(), len(foreign) == 0, "no type but "+strings.Join(known, ", "), fmt.Sprint("enum ", values))
	})
}
