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
			fields := leaves("", version.Schema.OpenAPIV3Schema.Properties[below])
			return slices.DeleteFunc(fields, func(field string) bool {
				return slices.ContainsFunc(skip, func(s string) bool {
					return field == s || strings.HasPrefix(field, s+".") || strings.HasPrefix(field, s+"[]")
				})
			})
		}
	}
	t.Fatalf("%s has no stored version", definition)
	return nil
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
