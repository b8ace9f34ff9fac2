package doccheck

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/testenv"
)

// Fields are the paths of the fields below one of a kind's top level, such as spec or status, in the version that is stored: those that
// have none below them, with [] for lists. What is below one of the fields to skip is left out, and so is that field.
func Fields(t testing.TB, definition, below string, skip ...string) []string {
	t.Helper()
	fields := leaves("", top(t, definition, below))
	return slices.DeleteFunc(fields, func(field string) bool {
		return slices.ContainsFunc(skip, func(s string) bool {
			return field == s || strings.HasPrefix(field, s+".") || strings.HasPrefix(field, s+"[]")
		})
	})
}

// Schemas are the schemas of all fields below one of a kind's top level by their paths.
func Schemas(t testing.TB, definition, below string) map[string]apiextensionsv1.JSONSchemaProps {
	t.Helper()
	found := map[string]apiextensionsv1.JSONSchemaProps{}
	collect(found, "", top(t, definition, below))
	return found
}

func collect(found map[string]apiextensionsv1.JSONSchemaProps, path string, schema apiextensionsv1.JSONSchemaProps) {
	found[path] = schema
	if schema.Items != nil && schema.Items.Schema != nil && schema.Items.Schema.Type == "object" {
		path, schema = path+"[]", *schema.Items.Schema
	}
	for name, field := range schema.Properties {
		collect(found, strings.TrimPrefix(path+"."+name, "."), field)
	}
}

// top is the schema of one of a kind's top level, in the version that is stored.
func top(t testing.TB, definition, below string) apiextensionsv1.JSONSchemaProps {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), filepath.FromSlash(definition)))
	if err != nil {
		t.Fatalf("Reading a definition: %v", err)
	}
	var crd apiextensionsv1.CustomResourceDefinition
	if err := yaml.Unmarshal(text, &crd); err != nil {
		t.Fatalf("Reading %s: %v", definition, err)
	}
	for _, version := range crd.Spec.Versions {
		if version.Storage {
			return version.Schema.OpenAPIV3Schema.Properties[below]
		}
	}
	t.Fatalf("%s has no stored version", definition)
	return apiextensionsv1.JSONSchemaProps{}
}

func leaves(path string, schema apiextensionsv1.JSONSchemaProps) (found []string) {
	if schema.Items != nil && schema.Items.Schema != nil && schema.Items.Schema.Type == "object" {
		return leaves(path+"[]", *schema.Items.Schema)
	}
	if len(schema.Properties) == 0 {
		return []string{path}
	}
	for name, field := range schema.Properties {
		found = append(found, leaves(strings.TrimPrefix(path+"."+name, "."), field)...)
	}
	return found
}
