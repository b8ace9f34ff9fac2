package static

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"millwright.dev/contracts/rules"
)

// Bundle is what a provider releases.
type Bundle struct {
	Components []File
	Metadata   *File
	Templates  []File
	Classes    []File
	// Release is the version of the release; empty if it is not known.
	Release string
	// Whole is true if these are all files of the release.
	Whole bool
	// Roles are the roles of kinds whose names and groups do not show them.
	Roles map[string]rules.Subject

	// contract is the version of the contract that cases verify.
	contract string
	// defined are the definitions among the components, cached: there may be tens of thousands of components.
	defined []crd
}

// indexed returns the bundle with its definitions cached.
func (b *Bundle) indexed() *Bundle {
	view := *b
	view.defined = b.crds()
	return &view
}

func (b *Bundle) objects() []*unstructured.Unstructured {
	var all []*unstructured.Unstructured
	for _, file := range b.Components {
		all = append(all, file.Objects...)
	}
	return all
}

func (b *Bundle) ofKind(kinds ...string) []*unstructured.Unstructured {
	return slices.DeleteFunc(b.objects(), func(o *unstructured.Unstructured) bool { return !slices.Contains(kinds, o.GetKind()) })
}

// crds returns the definitions among the components.
func (b *Bundle) crds() []crd {
	if b.defined != nil {
		return slices.Clone(b.defined)
	}
	all := []crd{}
	for _, object := range b.ofKind("CustomResourceDefinition") {
		all = append(all, crd{object})
	}
	return all
}

// kinds returns the definitions of the kinds that have a role.
func (b *Bundle) kinds(role rules.Subject) []crd {
	return slices.DeleteFunc(b.crds(), func(c crd) bool { return b.role(c) != role })
}

// contractKinds returns the definitions of all kinds that core objects refer to, and their templates if requested.
func (b *Bundle) contractKinds(templates bool) []crd {
	return slices.DeleteFunc(b.crds(), func(c crd) bool {
		if b.role(c) != "" {
			return false
		}
		base, isTemplate := strings.CutSuffix(c.kind(), "Template")
		kind, known := b.find(c.group(), base)
		return !templates || !isTemplate || !known || b.role(kind) == ""
	})
}

func (b *Bundle) find(group, kind string) (crd, bool) {
	for _, c := range b.crds() {
		if c.group() == group && c.kind() == kind {
			return c, true
		}
	}
	return crd{}, false
}

// role returns the role of a kind: from Roles, else by the suffix of its name and its group, or the type of the provider in other groups.
func (b *Bundle) role(c crd) rules.Subject {
	if role, known := b.Roles[c.kind()]; known {
		return role
	}
	kind, of := c.kind(), b.providerType(c)
	switch {
	// Machines of a MachinePool have no template: their provider creates them.
	case of == "infrastructure" && strings.HasSuffix(kind, "Machine") && !strings.HasSuffix(kind, "MachinePoolMachine"):
		return rules.InfraMachine
	case of == "infrastructure" && strings.HasSuffix(kind, "Cluster"):
		return rules.InfraCluster
	case of == "bootstrap" && strings.HasSuffix(kind, "Config"):
		return rules.BootstrapConfig
	// Managed control planes often belong to the infrastructure provider, and are in its group.
	case (of == "controlplane" || of == "infrastructure") && strings.HasSuffix(kind, "ControlPlane"):
		return rules.ControlPlane
	}
	return ""
}

func (b *Bundle) providerType(c crd) string {
	first, rest, _ := strings.Cut(c.group(), ".")
	if rest == "cluster.x-k8s.io" {
		return first
	}
	prefixes := map[string]string{"infrastructure": "infrastructure-", "bootstrap": "bootstrap-", "controlplane": "control-plane-"}
	for kind, prefix := range prefixes {
		if strings.HasPrefix(c.object.GetLabels()[providerLabel], prefix) {
			return kind
		}
	}
	return ""
}

// needsKinds reports whether the provider is of a type that has kinds to which core objects refer, by the label on its objects. Types
// without such kinds are known, and so are cores.
func (b *Bundle) needsKinds() bool {
	if slices.ContainsFunc(b.crds(), func(c crd) bool { return c.group() == "cluster.x-k8s.io" }) {
		return false
	}
	return !slices.ContainsFunc(b.objects(), func(o *unstructured.Unstructured) bool {
		return slices.ContainsFunc([]string{"core-", "ipam-", "runtime-extension-", "addon-"}, func(prefix string) bool {
			return strings.HasPrefix(o.GetLabels()[providerLabel], prefix)
		})
	})
}

// Unknown returns the kinds of Roles that no component defines.
func (b *Bundle) Unknown() []string {
	var unknown []string
	for _, kind := range slices.Sorted(maps.Keys(b.Roles)) {
		if !slices.ContainsFunc(b.crds(), func(c crd) bool { return c.kind() == kind }) {
			unknown = append(unknown, kind)
		}
	}
	return unknown
}

// contracts returns the versions of the contract that labels of kinds claim.
func (b *Bundle) contracts() []string {
	var found []string
	for _, contract := range []string{rules.V1Beta1, rules.V1Beta2} {
		if slices.ContainsFunc(b.contractKinds(true), func(c crd) bool { return len(c.labelled(contract)) > 0 }) {
			found = append(found, contract)
		}
	}
	return found
}
