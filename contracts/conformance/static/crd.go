package static

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kubeversion "k8s.io/apimachinery/pkg/version"
)

const (
	providerLabel  = "cluster.x-k8s.io/provider"
	contractPrefix = "cluster.x-k8s.io/"
)

// crd reads a CustomResourceDefinition, even a broken one.
type crd struct{ object *unstructured.Unstructured }

func (c crd) text(path ...string) string {
	value, _, _ := unstructured.NestedString(c.object.Object, path...)
	return value
}

func (c crd) group() string { return c.text("spec", "group") }
func (c crd) kind() string  { return c.text("spec", "names", "kind") }

// labelled returns the API versions that the label of a contract lists.
func (c crd) labelled(contract string) []string {
	return strings.FieldsFunc(c.object.GetLabels()[contractPrefix+contract], func(r rune) bool { return r == '_' })
}

// apiVersion is the newest API version that implements the contract.
func (c crd) apiVersion(contract string) string {
	listed := c.labelled(contract)
	if len(listed) == 0 {
		return ""
	}
	return slices.MaxFunc(listed, kubeversion.CompareKubeAwareVersionStrings)
}

// versions returns spec.versions.
func (c crd) versions() []map[string]any {
	// Schemas are large: nothing here is copied or changed.
	value, _, _ := unstructured.NestedFieldNoCopy(c.object.Object, "spec", "versions")
	list, _ := value.([]any)
	var found []map[string]any
	for _, item := range list {
		if version, ok := item.(map[string]any); ok {
			found = append(found, version)
		}
	}
	return found
}

func (c crd) version(name string) (map[string]any, bool) {
	for _, version := range c.versions() {
		if version["name"] == name {
			return version, true
		}
	}
	return nil, false
}

// contractVersion is the served version that the contract's label selects.
func (c crd) contractVersion(contract string) (map[string]any, bool) {
	version, found := c.version(c.apiVersion(contract))
	return version, found && version["served"] == true
}

// schemaPart is a part of an OpenAPI schema.
type schemaPart map[string]any

func schemaOf(version map[string]any) schemaPart {
	value, _, _ := unstructured.NestedFieldNoCopy(version, "schema", "openAPIV3Schema")
	found, _ := value.(map[string]any)
	return found
}

// at follows a path of names, in which [] is any item of a list and {} any value of an object with free names.
func (s schemaPart) at(path string) (schemaPart, bool) {
	for name := range strings.SplitSeq(path, ".") {
		var next any
		switch name {
		case "[]":
			next = s["items"]
		case "{}":
			next = s["additionalProperties"]
		default:
			properties, _ := s["properties"].(map[string]any)
			next = properties[name]
		}
		inner, ok := next.(map[string]any)
		if !ok {
			return nil, false
		}
		s = inner
	}
	return s, true
}

// kind is the type in the schema.
func (s schemaPart) kind() string {
	if s["x-kubernetes-int-or-string"] == true {
		return "integer or string"
	}
	kind, _ := s["type"].(string)
	return kind
}

// placeholder reports whether it is an object without any field.
func (s schemaPart) placeholder() bool {
	return s.kind() == "object" && len(s.names()) == 0 && s["additionalProperties"] == nil && s["x-kubernetes-preserve-unknown-fields"] != true
}

func (s schemaPart) names() []string {
	properties, _ := s["properties"].(map[string]any)
	names := make([]string, 0, len(properties))
	for name := range properties {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}
