package static

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kubeversion "k8s.io/apimachinery/pkg/version"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
	"millwright.dev/contracts/version"
)

// each returns a case that verifies every kind that core objects refer to.
func each(id rules.ID, name string, templates bool, judge func(c crd) (kept bool, expected, seen string)) conformance.Case[*Bundle] {
	return look("Kinds/"+name, func(t *conformance.T, b *Bundle) {
		for _, c := range b.contractKinds(templates) {
			kept, expected, seen := judge(c)
			check(t, id, c.kind(), kept, expected, seen)
		}
	}, id)
}

func kindCases() []conformance.Case[*Bundle] {
	return []conformance.Case[*Bundle]{
		each("CV-001", "Name", true, func(c crd) (bool, string, string) {
			want := version.CRDName(schema.GroupKind{Group: c.group(), Kind: c.kind()})
			return c.object.GetName() == want, "the name " + want, c.object.GetName()
		}),
		each("CV-002", "ContractLabel", true, func(c crd) (bool, string, string) {
			found := slices.Concat(c.labelled(rules.V1Beta1), c.labelled(rules.V1Beta2))
			return len(found) > 0, "a label cluster.x-k8s.io/v1beta1 or v1beta2 that lists API versions", contractLabels(c)
		}),
		each("CV-005", "LabelledVersionsServed", true, served),
		each("CV-006", "LabelOrder", true, func(c crd) (bool, string, string) {
			kept := true
			for _, contract := range []string{rules.V1Beta1, rules.V1Beta2} {
				kept = kept && slices.IsSortedFunc(c.labelled(contract), kubeversion.CompareKubeAwareVersionStrings)
			}
			return kept, "API versions from the oldest to the newest", contractLabels(c)
		}),
		each("CV-007", "Scope", true, func(c crd) (bool, string, string) {
			return c.text("spec", "scope") == "Namespaced", "scope Namespaced", "scope " + c.text("spec", "scope")
		}),
		each("CV-008", "Metadata", true, standardFields),
		each("CV-009", "ListKind", true, func(c crd) (bool, string, string) {
			seen := c.text("spec", "names", "listKind")
			return seen == c.kind()+"List", c.kind() + "List", seen
		}),
		each("CV-010", "StatusSubresource", false, func(c crd) (bool, string, string) {
			return inEveryVersion(c, "the subresource status", func(v map[string]any) bool {
				_, found, _ := unstructured.NestedMap(v, "subresources", "status")
				return found
			})
		}),
		look("Kinds/Category", categories, "CV-011"),
		look("Kinds/Aggregation", aggregation, "CV-012"),
		each("CV-015", "Conditions", false, func(c crd) (bool, string, string) {
			return inEveryVersion(c, "status.conditions, a list of conditions", func(v map[string]any) bool { return conditions(schemaOf(v)) })
		}),
		look("Kinds/PrinterColumns", printerColumns, "CV-016"),
	}
}

func contractLabels(c crd) string {
	var found []string
	for _, contract := range []string{rules.V1Beta1, rules.V1Beta2} {
		if value, ok := c.object.GetLabels()[contractPrefix+contract]; ok {
			found = append(found, contractPrefix+contract+": "+value)
		}
	}
	if len(found) == 0 {
		return "no such label"
	}
	return strings.Join(found, ", ")
}

// labelledVersions returns the API versions that the label of any contract lists.
func labelledVersions(c crd) []string {
	names := slices.Concat(c.labelled(rules.V1Beta1), c.labelled(rules.V1Beta2))
	slices.Sort(names)
	return slices.Compact(names)
}

// served requires that the definition has every listed version, and serves the newest of each contract: cores use no others.
func served(c crd) (bool, string, string) {
	for _, name := range labelledVersions(c) {
		if _, ok := c.version(name); !ok {
			return false, "a version " + name + " in spec.versions", "none"
		}
	}
	for _, contract := range []string{rules.V1Beta1, rules.V1Beta2} {
		if name := c.apiVersion(contract); name != "" {
			if _, ok := c.contractVersion(contract); !ok {
				return false, "a served version " + name + ", the newest of contract " + contract, "it is not served"
			}
		}
	}
	return true, "", "there are " + strings.Join(labelledVersions(c), ", ") + ", and the newest of each contract is served"
}

// inEveryVersion checks each API version that a label lists.
func inEveryVersion(c crd, expected string, has func(v map[string]any) bool) (bool, string, string) {
	for _, name := range labelledVersions(c) {
		if found, ok := c.version(name); ok && !has(found) {
			return false, expected, "version " + name + " does not have it"
		}
	}
	return true, expected, expected + " in " + strings.Join(labelledVersions(c), ", ")
}

func standardFields(c crd) (bool, string, string) {
	return inEveryVersion(c, "apiVersion, kind and metadata", func(v map[string]any) bool {
		for name, kind := range map[string]string{"apiVersion": "string", "kind": "string", "metadata": "object"} {
			if found, ok := schemaOf(v).at(name); !ok || found.kind() != kind {
				return false
			}
		}
		return true
	})
}

func conditions(s schemaPart) bool {
	for name, kind := range map[string]string{
		"type": "string", "status": "string", "reason": "string", "message": "string", "lastTransitionTime": "string",
		"observedGeneration": "integer",
	} {
		found, ok := s.at("status.conditions.[]." + name)
		if ok && found.kind() != kind || !ok && (name == "type" || name == "status") {
			return false
		}
	}
	return true
}

// Categories and columns are optional: a missing one is skipped, with a reason.
func categories(t *conformance.T, b *Bundle) {
	for _, c := range b.contractKinds(true) {
		found, _, _ := unstructured.NestedStringSlice(c.object.Object, "spec", "names", "categories")
		if slices.Contains(found, "cluster-api") {
			t.Pass("CV-011", c.kind(), "in the category cluster-api")
		} else {
			t.Skip("CV-011", c.kind(), "it is not in the category cluster-api; that is optional")
		}
	}
}

func printerColumns(t *conformance.T, b *Bundle) {
	for _, c := range b.contractKinds(false) {
		kept, _, seen := inEveryVersion(c, "columns for Cluster, readiness and age", func(v map[string]any) bool {
			list, _, _ := unstructured.NestedSlice(v, "additionalPrinterColumns")
			text := strings.ToLower(fmt.Sprint(list))
			return strings.Contains(text, "cluster-name") && strings.Contains(text, "creationtimestamp") &&
				(strings.Contains(text, "ready") || strings.Contains(text, "provisioned") || strings.Contains(text, "initialized"))
		})
		if kept {
			t.Pass("CV-016", c.kind(), "%s", seen)
		} else {
			t.Skip("CV-016", c.kind(), "columns for Cluster, readiness and age are optional: %s", seen)
		}
	}
}

func aggregation(t *conformance.T, b *Bundle) {
	own := []string{"infrastructure.cluster.x-k8s.io", "bootstrap.cluster.x-k8s.io", "controlplane.cluster.x-k8s.io"}
	want := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	for _, c := range b.contractKinds(true) {
		if slices.Contains(own, c.group()) {
			t.Pass("CV-012", c.kind(), "the core's role has the group %s", c.group())
			continue
		}
		granted := map[string]bool{}
		for _, role := range b.ofKind("ClusterRole") {
			if role.GetLabels()["cluster.x-k8s.io/aggregate-to-manager"] == "true" {
				grants(role, c, granted)
			}
		}
		missing := slices.DeleteFunc(slices.Clone(want), func(verb string) bool { return granted[verb] || granted["*"] })
		check(t, "CV-012", c.kind(), len(missing) == 0, "an aggregated ClusterRole with "+strings.Join(want, ", "),
			"granted: "+strings.Join(slices.Sorted(maps.Keys(granted)), ", "))
	}
}

// grants adds the verbs that a role has for a kind.
func grants(role *unstructured.Unstructured, c crd, granted map[string]bool) {
	list, _, _ := unstructured.NestedSlice(role.Object, "rules")
	for _, item := range list {
		rule, _ := item.(map[string]any)
		groups, _, _ := unstructured.NestedStringSlice(rule, "apiGroups")
		resources, _, _ := unstructured.NestedStringSlice(rule, "resources")
		verbs, _, _ := unstructured.NestedStringSlice(rule, "verbs")
		ours := slices.Contains(groups, c.group()) || slices.Contains(groups, "*")
		if ours && (slices.Contains(resources, c.text("spec", "names", "plural")) || slices.Contains(resources, "*")) {
			for _, verb := range verbs {
				granted[verb] = true
			}
		}
	}
}
