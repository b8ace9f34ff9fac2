package main

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

const identityPage = "docs/reference/gcpidentity.md"

// specOf is the schema of the spec of a definition.
func specOf(g *WithT, plural string) apiextensionsv1.JSONSchemaProps {
	text, err := os.ReadFile(filepath.Join(testenv.Root(), string(testenv.GCPCRDs), "infrastructure.millwright.dev_"+plural+".yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	var definition apiextensionsv1.CustomResourceDefinition
	g.Expect(yaml.Unmarshal(text, &definition)).To(Succeed())
	return definition.Spec.Versions[0].Schema.OpenAPIV3Schema.Properties["spec"]
}

// used are the paths of the fields that a value sets.
func used(path string, value any) []string {
	switch v := value.(type) {
	case map[string]any:
		var all []string
		for name, field := range v {
			all = append(all, used(strings.TrimPrefix(path+"."+name, "."), field)...)
		}
		return append(all, path)
	case []any:
		if len(v) > 0 {
			if _, isMap := v[0].(map[string]any); isMap {
				return used(path+"[]", v[0])
			}
		}
	}
	return []string{path}
}

// TestReferenceOfIdentitiesIsWhole compares the page with the definition and the code, and finds each field in an example.
func TestReferenceOfIdentitiesIsWhole(t *testing.T) {
	g := NewWithT(t)
	page := doccheck.Read(t, identityPage)
	page.CheckLinks(t)
	fields := leaves("", specOf(g, "gcpidentities"))
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

	examples := page.Examples(t, "")
	shown := map[string]bool{}
	for _, example := range examples {
		if example.GetKind() == identityKind {
			for _, path := range used("", example.Object["spec"]) {
				shown[path] = true
			}
		}
	}
	doccheck.Apply(t, c, metav1.NamespaceDefault, examples, client.DryRunAll)
	missing := slices.DeleteFunc(fields, func(path string) bool { return shown[path] })
	g.Expect(missing).To(BeEmpty(), "fields without an example in %v", slices.Sorted(maps.Keys(shown)))
}

// TestTheSampleOfAnIdentityIsValid: the API server takes it.
func TestTheSampleOfAnIdentityIsValid(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(testenv.Root(), "config/samples/gcp/gcpidentity.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	sample := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal(content, sample)).To(Succeed())
	g.Expect(c.Create(t.Context(), sample, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
}

// TestIdentitiesThatAreRefused: each rule has an example that breaks it.
func TestIdentitiesThatAreRefused(t *testing.T) {
	const (
		pool  = "//iam.googleapis.com/projects/1/locations/global/workloadIdentityPools/pool/providers/name"
		email = "machines@team-a.iam.gserviceaccount.com"
	)
	for spec, want := range map[string]string{
		`{}`:                                             "exactly one of",
		`{ambient: {}, secret: {name: a}}`:               "exactly one of",
		`{impersonate: {email: ` + email + `}}`:          "exactly one of",
		`{secret: {}}`:                                   "name",
		`{secret: {name: A_b}}`:                          "spec.secret.name",
		`{workloadIdentity: {tokenFile: /a/b}}`:          "audience",
		`{workloadIdentity: {audience: "` + pool + `"}}`: "tokenFile",
		`{workloadIdentity: {audience: "https://thief", tokenFile: /a/b}}`:                        "provider of a pool",
		`{workloadIdentity: {audience: "` + pool + `/x", tokenFile: /a/b}}`:                       "provider of a pool",
		`{workloadIdentity: {audience: "` + pool + `", tokenFile: token}}`:                        "absolute path",
		`{workloadIdentity: {audience: "` + pool + `", tokenFile: /var/run/secrets/../../etc/x}}`: "without . and ..",
		`{ambient: {}, impersonate: {}}`:                                                          "email",
		`{ambient: {}, impersonate: {email: person@example.com}}`:                                 "impersonate.email",
		`{ambient: {}, impersonate: {email: "a/../b@x.gserviceaccount.com"}}`:                     "impersonate.email",
		`{ambient: {}, impersonate: {email: ` + email + `, delegates: []}}`:                       "at least 1",
		`{ambient: {}, impersonate: {email: ` + email + `, delegates: [x]}}`:                      "delegates",
		`{ambient: {}, impersonate: {email: ` + email + `, lifetimeSeconds: 60}}`:                 "lifetimeSeconds",
		`{ambient: {}, allowedNamespaces: {names: ["*"]}}`:                                        "names",
	} {
		g := NewWithT(t)
		id := &unstructured.Unstructured{Object: map[string]any{}}
		id.SetAPIVersion("infrastructure.millwright.dev/v1alpha1")
		id.SetKind(identityKind)
		id.SetName("invalid")
		content := map[string]any{}
		g.Expect(yaml.Unmarshal([]byte(spec), &content)).To(Succeed())
		id.Object["spec"] = content
		g.Expect(c.Create(context.Background(), id, client.DryRunAll)).To(MatchError(ContainSubstring(want)), spec)
	}
}
