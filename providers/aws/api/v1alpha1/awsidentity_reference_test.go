package v1alpha1_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	driverv1 "millwright.dev/providers/driver/api/v1alpha1"
	"millwright.dev/test/doccheck"
	"millwright.dev/test/testenv"
)

const identityPage = "docs/reference/awsidentity.md"

// identityFields are the fields that the definition of AWSIdentities has below spec, by their paths. Labels are the user's.
func identityFields(t *testing.T) []string {
	t.Helper()
	def, err := definition(t.Context(), "awsidentities")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	versions, _, err := unstructured.NestedSlice(def.Object, "spec", "versions")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	fields, _, err := unstructured.NestedMap(versions[0].(map[string]any), "schema", "openAPIV3Schema", "properties", "spec", "properties")
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	return leaves("", map[string]any{"properties": fields})
}

func TestReferenceOfIdentitiesIsWhole(t *testing.T) {
	page := doccheck.Read(t, identityPage)
	page.CheckLinks(t)
	documented := slices.Concat(page.Keys(t, "Where the credentials come from", "Field"), page.Keys(t, "Who may use it", "Field"))
	doccheck.Compare(t, page, "fields", documented, identityFields(t))

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
}

// TestReferenceExamplesOfIdentities applies the examples, and finds each field in one of them.
func TestReferenceExamplesOfIdentities(t *testing.T) {
	examples := doccheck.Read(t, identityPage).Examples(t, "")
	shown := map[string]bool{}
	for _, example := range examples {
		if example.GetKind() == "AWSIdentity" {
			maps.Copy(shown, used("", example.Object["spec"]))
		}
	}
	doccheck.Apply(t, c, metav1.NamespaceDefault, examples, client.DryRunAll)
	missing := slices.DeleteFunc(identityFields(t), func(path string) bool { return shown[path] })
	NewWithT(t).Expect(missing).To(BeEmpty(), "fields without an example")
}

func TestTheSampleIsValid(t *testing.T) {
	g := NewWithT(t)
	content, err := os.ReadFile(filepath.Join(testenv.Root(), "config/samples/aws/awsidentity.yaml"))
	g.Expect(err).NotTo(HaveOccurred())
	sample := &unstructured.Unstructured{}
	g.Expect(yaml.Unmarshal(content, sample)).To(Succeed())
	g.Expect(c.Create(t.Context(), sample, client.DryRunAll, client.FieldValidation(metav1.FieldValidationStrict))).To(Succeed())
}

func TestInvalidIdentities(t *testing.T) {
	const role = "arn:aws:iam::123456789012:role/machines"
	for spec, want := range map[string]string{
		`{}`:                               "exactly one of",
		`{ambient: {}, secret: {name: a}}`: "exactly one of",
		`{assumeRoles: [{roleARN: "` + role + `"}]}`: "exactly one of",
		`{secret: {}}`:                                               "name",
		`{secret: {name: A_b}}`:                                      "spec.secret.name",
		`{webIdentity: {tokenFile: /a/b}}`:                           "roleARN",
		`{webIdentity: {roleARN: "` + role + `"}}`:                   "tokenFile",
		`{webIdentity: {roleARN: "` + role + `", tokenFile: token}}`: "absolute path",
		`{webIdentity: {roleARN: "` + role + `", tokenFile: /var/run/secrets/../../etc/x}}`: "without . and ..",
		`{webIdentity: {roleARN: "` + role + `", tokenFile: /var/run/secrets/..}}`:          "without . and ..",
		`{webIdentity: {roleARN: "arn:aws:iam::123456789012:user/x", tokenFile: /a/b}}`:     "ARN of a role",
		`{ambient: {}, assumeRoles: []}`:                                                    "at least 1",
		`{ambient: {}, assumeRoles: [{roleARN: machines}]}`:                                 "ARN of a role",
		`{ambient: {}, assumeRoles: [{roleARN: "` + role +
			`", durationSeconds: 60}]}`: "durationSeconds",
		`{ambient: {}, assumeRoles: [{roleARN: "` + role +
			`", externalID: "a b"}]}`: "externalID",
		`{ambient: {}, assumeRoles: [{roleARN: "` + role +
			`", sessionName: "a b"}]}`: "sessionName",
		`{ambient: {}, assumeRoles: [{roleARN: "` + role +
			`", sessionPolicy: "Allow"}]}`: "JSON object",
		`{ambient: {}, assumeRoles: [{roleARN: "` + role + `"}, {roleARN: "` + role +
			`2", durationSeconds: 7200}]}`: "3600 seconds at most",
		`{webIdentity: {roleARN: "` + role + `", tokenFile: /a/b}, assumeRoles: [{roleARN: "` + role +
			`", durationSeconds: 7200}]}`: "3600 seconds at most",
		`{ambient: {}, region: Frankfurt}`:                  "region",
		`{ambient: {}, allowedNamespaces: {names: []}}`:     "at least 1",
		`{ambient: {}, allowedNamespaces: {names: ["*"]}}`:  "names",
		`{ambient: {}, allowedNamespaces: {names: [a, a]}}`: "Duplicate",
	} {
		g := NewWithT(t)
		content := map[string]any{}
		g.Expect(yaml.Unmarshal([]byte(spec), &content)).To(Succeed())
		id := object("AWSIdentity", map[string]any{"spec": content})
		id.SetName("invalid")
		id.SetNamespace("")
		err := c.Create(t.Context(), id, client.DryRunAll)
		g.Expect(err).To(MatchError(ContainSubstring(want)), spec)
	}
}
