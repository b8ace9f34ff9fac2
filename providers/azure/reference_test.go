package main

import (
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

// leaves are the paths of the fields below a schema that have none below them; spot and ephemeral too, which mean something when empty.
func leaves(path string, schema apiextensionsv1.JSONSchemaProps) (found []string) {
	if schema.Items != nil && schema.Items.Schema != nil && schema.Items.Schema.Type == "object" {
		return leaves(path+"[]", *schema.Items.Schema)
	}
	if len(schema.Properties) == 0 {
		return []string{path}
	}
	if slices.Contains([]string{"spot", "osDisk.ephemeral"}, path) {
		found = append(found, path)
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

// fieldsOf are those of the spec of a kind.
func fieldsOf(t *testing.T, plural string) []string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(testenv.Root(), string(testenv.AzureCRDs), "infrastructure.millwright.dev_"+plural+".yaml"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var definition apiextensionsv1.CustomResourceDefinition
	NewWithT(t).Expect(yaml.Unmarshal(text, &definition)).To(Succeed())
	return leaves("", definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"])
}

// used are the paths of the fields that a value has.
func used(found map[string]bool, path string, value any) {
	found[path] = true
	switch value := value.(type) {
	case map[string]any:
		for name, inner := range value {
			below := name
			if path != "" {
				below = path + "." + name
			}
			used(found, below, inner)
		}
	case []any:
		for _, inner := range value {
			used(found, path+"[]", inner)
		}
	}
}

// TestReferenceOfIdentitiesIsWhole compares the page with definition and code, applies the examples, and finds each field in one of them.
func TestReferenceOfIdentitiesIsWhole(t *testing.T) {
	page := doccheck.Read(t, "docs/reference/azureidentity.md")
	page.CheckLinks(t)
	fields := fieldsOf(t, "azureidentities")
	doccheck.Compare(
		t,
		page,
		"fields",
		slices.Concat(page.Keys(t, "Where the credentials come from", "Field"), page.Keys(t, "Who may use it", "Field")),
		fields,
	)
	reasons := page.Keys(t, "Conditions", "Reasons")
	slices.Sort(reasons)
	coded := []string{
		driverv1.CredentialsAcceptedReason,
		driverv1.SecretNotFoundReason,
		driverv1.CredentialsInvalidReason,
		driverv1.CredentialsNotAllowedReason,
		driverv1.CredentialsRefusedReason,
		driverv1.AccountChangedReason,
		driverv1.NotVerifiedReason,
		driverv1.UsedByMachinesReason,
		driverv1.UsersUnknownReason,
		driverv1.InvalidConfigurationReason,
		driverv1.RefusedByAPIServerReason,
	}
	slices.Sort(coded)
	doccheck.Compare(t, page, "reasons", slices.Compact(reasons), coded)
	doccheck.Compare(t, page, "events", page.Keys(t, "Events", "Reason"),
		doccheck.Constants(t, doccheck.Named("Event"), "providers/driver/identity/controller", "contracts/controller/scopes"))

	shown := map[string]bool{}
	examples := page.Examples(t, "")
	for _, example := range examples {
		used(shown, "", example.Object["spec"])
	}
	doccheck.Apply(t, c, metav1.NamespaceDefault, examples, client.DryRunAll)
	missing := slices.DeleteFunc(fields, func(path string) bool { return shown[path] })
	NewWithT(t).Expect(missing).To(BeEmpty(), "fields without an example")
}

// TestReferenceIsWhole compares the page with the definition, applies the examples, and finds each field that a person sets in one of them.
func TestReferenceIsWhole(t *testing.T) {
	page := doccheck.Read(t, "docs/reference/azuremachine.md")
	page.CheckLinks(t)
	var documented []string
	for _, heading := range []string{"What is launched", "Network", "Disks", "How it is bought", "What it runs on"} {
		documented = append(documented, page.Keys(t, heading, "Field")...)
	}
	fields := fieldsOf(t, "azuremachines")
	doccheck.Compare(t, page, "fields", documented, fields)
	shown := map[string]bool{"providerID": true}
	examples := page.Examples(t, "")
	for _, example := range examples {
		spec := example.Object["spec"].(map[string]any)
		if template, ok := spec["template"].(map[string]any); ok {
			spec = template["spec"].(map[string]any)
		}
		used(shown, "", spec)
	}
	doccheck.Apply(t, c, metav1.NamespaceDefault, examples, client.DryRunAll)
	missing := slices.DeleteFunc(fields, func(path string) bool { return shown[path] })
	NewWithT(t).Expect(missing).To(BeEmpty(), "fields without an example")
}
