package static

import (
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

const (
	replicasField = "spec.replicas"
	machineField  = "spec.machineTemplate"
)

var planeRules = []fieldRule{
	{
		id: "CP-001", role: rules.ControlPlane, need: required,
		v1beta1: []field{{"status.initialized", "boolean"}}, v1beta2: []field{{"status.initialization.controlPlaneInitialized", "boolean"}},
	},
	{id: "CP-002", role: rules.ControlPlane, v1beta2: endpoint},
	{id: "CP-003", role: rules.ControlPlane, v1beta2: []field{{"status.externalManagedControlPlane", "boolean"}}},
	{id: "CP-005", role: rules.ControlPlane, v1beta2: []field{{"spec.version", "string"}}},
	{
		id: "CP-007", role: rules.ControlPlane, when: replicasField,
		v1beta1: integers("spec.replicas", "status.replicas", "status.readyReplicas", "status.updatedReplicas", "status.unavailableReplicas"),
		v1beta2: integers("spec.replicas", "status.replicas", "status.readyReplicas", "status.availableReplicas", "status.upToDateReplicas"),
	},
	{id: "CP-011", role: rules.ControlPlane, when: "status.versions", v1beta2: integers("status.versions.[].replicas")},
	{
		id: "CP-012", role: rules.ControlPlane, v1beta2: []field{{"status.failureReason", "string"}, {"status.failureMessage", "string"}},
	},
	{
		id: "CP-013", role: rules.ControlPlane, when: machineField,
		v1beta1: []field{{"spec.machineTemplate.metadata", "object"}, {"spec.machineTemplate.infrastructureRef", "object"}},
		v1beta2: []field{{"spec.machineTemplate.metadata", "object"}, {"spec.machineTemplate.spec.infrastructureRef", "object"}},
	},
	{
		id: "CP-014", role: rules.ControlPlane, when: machineField,
		v1beta1: []field{
			{"spec.machineTemplate.nodeDrainTimeout", "string"}, {"spec.machineTemplate.nodeVolumeDetachTimeout", "string"},
			{"spec.machineTemplate.nodeDeletionTimeout", "string"},
		},
		v1beta2: integers("spec.machineTemplate.spec.deletion.nodeDrainTimeoutSeconds",
			"spec.machineTemplate.spec.deletion.nodeVolumeDetachTimeoutSeconds", "spec.machineTemplate.spec.deletion.nodeDeletionTimeoutSeconds"),
	},
	{
		id: "CP-015", role: rules.ControlPlane, v1beta1: []field{{"spec.machineTemplate.readinessGates.[].conditionType", "string"}},
		v1beta2: []field{{"spec.machineTemplate.spec.readinessGates.[].conditionType", "string"}},
	},
	{
		id: "CP-016", role: rules.ControlPlane,
		v1beta2: []field{{"spec.machineTemplate.spec.taints.[].key", "string"}, {"spec.machineTemplate.spec.taints.[].effect", "string"}},
	},
	{
		id: "CP-017", role: rules.ControlPlane, v1beta1: []field{{"spec.rolloutAfter", "string"}},
		v1beta2: []field{{"spec.rollout.after", "string"}},
	},
}

func integers(paths ...string) []field {
	var fields []field
	for _, path := range paths {
		fields = append(fields, field{path, "integer"})
	}
	return fields
}

func planeCases() []conformance.Case[*Bundle] {
	return []conformance.Case[*Bundle]{
		look("ControlPlane/Versions", planeVersions, "CP-006"),
		look("ControlPlane/Scale", planeScale, "CP-008"),
	}
}

func planeVersions(t *conformance.T, b *Bundle) {
	b.schemas(t, "CP-006", rules.ControlPlane, func(c crd, s schemaPart) {
		if _, managed := s.at("spec.version"); !managed {
			t.Skip("CP-006", c.kind(), "the kind has no field spec.version")
			return
		}
		expected, seen := "status.versions.[].version or status.version, a string", "neither of them"
		for _, path := range []string{"status.versions.[].version", "status.version"} {
			if found, ok := s.at(path); ok {
				check(t, "CP-006", c.kind(), found.kind() == "string", expected, path+" "+found.kind())
				return
			}
		}
		check(t, "CP-006", c.kind(), false, expected, seen)
	})
}

func planeScale(t *conformance.T, b *Bundle) {
	b.schemas(t, "CP-008", rules.ControlPlane, func(c crd, s schemaPart) {
		if _, counted := s.at(replicasField); !counted {
			t.Skip("CP-008", c.kind(), "the kind has no field %s", replicasField)
			return
		}
		version, _ := c.contractVersion(b.contract)
		scale, _, _ := unstructured.NestedStringMap(version, "subresources", "scale")
		seen := []string{scale["specReplicasPath"], scale["statusReplicasPath"], scale["labelSelectorPath"]}
		want := []string{".spec.replicas", ".status.replicas", ".status.selector"}
		selector, _ := s.at("status.selector")
		check(t, "CP-008", c.kind(), strings.Join(seen, " ") == strings.Join(want, " ") && selector.kind() == "string",
			"the subresource scale with "+strings.Join(want, ", ")+", and status.selector a string",
			"paths "+strings.Join(seen, ", ")+"; status.selector "+selector.kind())
	})
}
