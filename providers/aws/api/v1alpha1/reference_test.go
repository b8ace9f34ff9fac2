package v1alpha1_test

import (
	"maps"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"millwright.dev/test/doccheck"
)

const referencePage = "docs/reference/awsmachine.md"

// tables are the headings of the reference below which the fields are.
var tables = []string{"What is launched", "Network", "Volumes", "How it is bought", "What it runs on"}

// leaves are the paths of the fields below a schema that have none below them; spot too, since it means something when it is empty.
func leaves(path string, schema map[string]any) []string {
	if items, ok := schema["items"].(map[string]any); ok && items["type"] == "object" {
		return leaves(path+"[]", items)
	}
	properties, ok := schema["properties"].(map[string]any)
	if !ok {
		return []string{path}
	}
	var found []string
	if path == "spot" {
		found = append(found, path)
	}
	for name, field := range properties {
		below := name
		if path != "" {
			below = path + "." + name
		}
		found = append(found, leaves(below, field.(map[string]any))...)
	}
	return found
}

// TestReferenceIsWhole compares the page with the definition: each field is in a table, and each in a table exists.
func TestReferenceIsWhole(t *testing.T) {
	page := doccheck.Read(t, referencePage)
	page.CheckLinks(t)
	var documented []string
	for _, heading := range tables {
		documented = append(documented, page.Keys(t, heading, "Field")...)
	}
	doccheck.Compare(t, page, "fields", documented, leaves("", map[string]any{"properties": fieldsOf(t)}))
}

// used are the paths of the fields that a value has.
func used(path string, value any) map[string]bool {
	found := map[string]bool{path: true}
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			below := name
			if path != "" {
				below = path + "." + name
			}
			maps.Copy(found, used(below, inner))
		}
	case []any:
		for _, inner := range value {
			maps.Copy(found, used(path+"[]", inner))
		}
	}
	return found
}

// TestReferenceExamples applies the examples, and finds each field that a person sets in one of them.
func TestReferenceExamples(t *testing.T) {
	g := NewWithT(t)
	examples := doccheck.Read(t, referencePage).Examples(t, "")
	shown := map[string]bool{"providerID": true}
	for _, example := range examples {
		spec := example.Object["spec"].(map[string]any)
		if template, ok := spec["template"].(map[string]any); ok {
			spec = template["spec"].(map[string]any)
		}
		maps.Copy(shown, used("", spec))
	}
	doccheck.Apply(t, c, metav1.NamespaceDefault, examples, client.DryRunAll)
	missing := slices.DeleteFunc(leaves("", map[string]any{"properties": fieldsOf(t)}), func(path string) bool { return shown[path] })
	g.Expect(missing).To(BeEmpty(), "fields without an example")
}
