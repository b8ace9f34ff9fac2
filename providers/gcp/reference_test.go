package main

import (
	"os"
	"path/filepath"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"sigs.k8s.io/yaml"

	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// leaves are the paths of the fields below a schema that have none below them.
func leaves(path string, schema apiextensionsv1.JSONSchemaProps) (found []string) {
	if schema.Items != nil && schema.Items.Schema != nil && schema.Items.Schema.Type == "object" {
		return leaves(path+"[]", *schema.Items.Schema)
	}
	if len(schema.Properties) == 0 {
		return []string{path}
	}
	for name, field := range schema.Properties {
		below := name
		if path != "" {
			below = path + "." + name
		}
		found = append(found, leaves(below, field)...)
	}
	return found
}

// TestReferenceIsWhole compares the page with the definition: each field is in a table, and each in a table exists.
func TestReferenceIsWhole(t *testing.T) {
	g := NewWithT(t)
	text, err := os.ReadFile(filepath.Join(testenv.Root(), string(testenv.GCPCRDs), "infrastructure.millwright.dev_gcpmachines.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var definition apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.Unmarshal(text, &definition)).To(Succeed())
	page := doccheck.Read(t, "docs/reference/gcpmachine.md")
	page.CheckLinks(t)
	var documented []string
	for _, heading := range []string{"What is launched", "Network", "Disks", "How it is bought", "What it runs on"} {
		documented = append(documented, page.Keys(t, heading, "Field")...)
	}
	schema := definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
	doccheck.Compare(t, page, "fields", documented, leaves("", schema))
}
