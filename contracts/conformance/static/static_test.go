package static_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/conformance/static"
	"millwright.dev/contracts/rules"
)

func write(t *testing.T, files map[string][]object) string {
	t.Helper()
	dir := t.TempDir()
	for name, objects := range files {
		if name == releaseFile {
			continue
		}
		var parts []string
		for _, o := range objects {
			data, err := yaml.Marshal(o)
			if err != nil {
				t.Fatal(err)
			}
			parts = append(parts, string(data))
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.Join(parts, "---\n")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func results(t *testing.T, files map[string][]object) []report.Result {
	t.Helper()
	bundle, err := static.Load(write(t, files))
	if err != nil {
		t.Fatal(err)
	}
	bundle.Release = "v1.2.3"
	if given := files[releaseFile]; len(given) > 0 {
		bundle.Release, _ = given[0]["version"].(string)
	}
	return static.Run(bundle, conformance.Selection{Profile: conformance.ProviderProfile, Level: conformance.Extended})
}

func failed(all []report.Result) []rules.ID {
	var found []rules.ID
	for _, result := range all {
		if result.Status == report.Fail {
			found = append(found, result.Rule)
		}
	}
	slices.Sort(found)
	return slices.Compact(found)
}

func TestTheSampleKeepsEveryRule(t *testing.T) {
	for _, result := range results(t, sample(t)) {
		if result.Status == report.Fail {
			t.Errorf("%s %s %s: %v", result.Rule, result.Object, result.ContractVersion, result.Failures)
		}
	}
}

func TestEachRuleFailsAloneWhenItIsBroken(t *testing.T) {
	for id, mutate := range mutations {
		t.Run(string(id), func(t *testing.T) {
			files := sample(t)
			mutate(files)
			if got := failed(results(t, files)); !slices.Equal(got, []rules.ID{id}) {
				t.Errorf("failed: %v, want %s alone", got, id)
			}
		})
	}
}

// unbroken are rules of which nothing fails here, and why.
var unbroken = map[rules.ID]string{
	"CO-048": "of cores: a test of its own",
}

// hints are rules that nothing fails, as they leave all open: what breaks them has to be seen as a reason all the same.
var hints = map[rules.ID]mutation{
	"CV-011": in(components, machine, set(nil, "spec", "names", "categories")),
	"CV-016": apiVersion(machine, func(v object) { delete(v, "additionalPrinterColumns") }),
	"PR-038": func(files map[string][]object) { delete(files, "clusterclass-quick.yaml") },
}

func TestAHintThatIsNotKeptIsSkippedWithAReason(t *testing.T) {
	skips := func(files map[string][]object, id rules.ID) (found []report.Result) {
		for _, result := range results(t, files) {
			if result.Rule == id && result.Status == report.Skip {
				found = append(found, result)
			}
		}
		return found
	}
	for id, mutate := range hints {
		files := sample(t)
		if got := skips(files, id); len(got) > 0 {
			t.Errorf("%s is skipped of the sample: %+v", id, got)
		}
		mutate(files)
		if got := skips(files, id); len(got) != 1 || got[0].Reason == "" {
			t.Errorf("%s is not skipped with a reason: %+v", id, got)
		}
		if got := failed(results(t, files)); len(got) > 0 {
			t.Errorf("%s: failed: %v", id, got)
		}
	}
}

func TestEveryStaticRuleHasACaseAndAMutation(t *testing.T) {
	known := conformance.RulesOf(static.Cases())
	for _, id := range known {
		if rule, found := rules.ByID(id); !found || !rule.VerifiedBy(rules.Static) {
			t.Errorf("a case speaks of %s, which is no rule that is verified by manifests", id)
		}
	}
	for _, rule := range rules.All() {
		if !rule.VerifiedBy(rules.Static) {
			continue
		}
		if !slices.Contains(known, rule.ID) {
			t.Errorf("no case verifies %s", rule.ID)
		}
		if _, excused := unbroken[rule.ID]; mutations[rule.ID] == nil && hints[rule.ID] == nil && !excused {
			t.Errorf("no mutation breaks %s", rule.ID)
		}
	}
}

func TestHostileInputIsAnError(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no YAML": "a: [", "a list": "- a\n", "a word": "word", "no kind": "apiVersion: v1\n",
		"items that are no objects": "apiVersion: v1\nkind: List\nitems: [1]\n",
		"items of no kind":          "apiVersion: v1\nkind: List\nitems: [{metadata: {name: x}}]\n",
		"comments alone":            "# nothing\n---\n# nothing here either\n--- # nor here\n",
	} {
		t.Run(name, func(t *testing.T) {
			_, err := static.Source{Components: []string{static.Stdin}, Stdin: strings.NewReader(text)}.Load()
			if err == nil || !strings.Contains(err.Error(), "load manifests: ") {
				t.Errorf("error: %v", err)
			}
		})
	}
}

func TestBrokenDefinitionsDoNotStopTheRun(t *testing.T) {
	for _, spec := range []string{
		"1", "{}", "[]", "{versions: 1}", "{names: [], versions: [1, {name: 2}]}",
		"{group: infrastructure.cluster.x-k8s.io, names: {kind: AMachine}}",
	} {
		text := "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: x}\nspec: " + spec + "\n"
		bundle, err := static.Source{Components: []string{static.Stdin}, Stdin: strings.NewReader(text)}.Load()
		if err != nil {
			t.Fatal(err)
		}
		if len(static.Run(bundle, conformance.Selection{Profile: conformance.ProviderProfile, Level: conformance.Extended})) == 0 {
			t.Errorf("%s: no results", spec)
		}
	}
}

func TestACoreAggregatesRoles(t *testing.T) {
	const role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: x}\n"
	const rule = "aggregationRule: {clusterRoleSelectors: [{matchLabels: {cluster.x-k8s.io/aggregate-to-manager: \"true\"}}]}\n"
	for text, want := range map[string]int{role: 1, role + rule: 0} {
		bundle, err := static.Source{Components: []string{static.Stdin}, Stdin: strings.NewReader(text)}.Load()
		if err != nil {
			t.Fatal(err)
		}
		got := failed(static.Run(bundle, conformance.Selection{Profile: conformance.CoreProfile, Level: conformance.Extended}))
		if len(got) != want {
			t.Errorf("failed: %v", got)
		}
	}
}

// Components come as a stream of documents, and as lists of any kind or of one, as kubectl and the API server write them.
func TestListsAreTakenApart(t *testing.T) {
	const one, two = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n", "apiVersion: v1\nkind: Secret\nmetadata: {name: two}\n"
	for name, text := range map[string]string{
		"documents":           "# a comment\n---\n" + one + "--- # another\n# a third\n---\r\n" + two + "---\n",
		"a List":              "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}, {apiVersion: v1, kind: Secret, metadata: {name: two}}]\n",
		"a List in a List":    "apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: List, items: [{apiVersion: v1, kind: ConfigMap, metadata: {name: one}}]}]\n---\n" + two,
		"lists of each kind":  "apiVersion: v1\nkind: ConfigMapList\nitems: [{metadata: {name: one}}]\n---\napiVersion: v1\nkind: SecretList\nitems: [{apiVersion: v1, kind: Secret, metadata: {name: two}}]\n",
		"lists without items": "apiVersion: v1\nkind: SecretList\nitems: []\n---\n" + one + "---\n" + two,
	} {
		file, err := static.Parse("x.yaml", []byte(text))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		var got []string
		for _, o := range file.Objects {
			got = append(got, o.GetAPIVersion()+" "+o.GetKind()+" "+o.GetName())
		}
		if want := []string{"v1 ConfigMap one", "v1 Secret two"}; !slices.Equal(got, want) {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// A metadata.yaml without anything in it lacks all that has to be in it.
func TestAnEmptyMetadataFileBreaksItsRules(t *testing.T) {
	bundle, err := static.Load(write(t, sample(t)))
	if err != nil {
		t.Fatal(err)
	}
	bundle.Release, bundle.Metadata = "v1.2.3", &static.File{Path: "metadata.yaml"}
	got := failed(static.Run(bundle, conformance.Selection{Profile: conformance.ProviderProfile, Level: conformance.Extended}))
	if want := []rules.ID{"PR-005", "PR-006", "PR-007", "PR-008"}; !slices.Equal(got, want) {
		t.Errorf("failed: %v, want %v", got, want)
	}
}

// A provider whose kinds nobody recognizes is not conformant by that: what core features ask of kinds was not looked at.
func TestKindsThatNobodyRecognizesAreSkipped(t *testing.T) {
	const text = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\n" +
		"metadata: {name: hosts.example.dev, labels: {cluster.x-k8s.io/provider: %s}}\n" +
		"spec: {group: example.dev, scope: Namespaced, names: {kind: Host, plural: hosts}}\n"
	for provider, want := range map[string]bool{"infrastructure-sample": true, "bootstrap-sample": true, "control-plane-sample": true,
		"addon-sample": false, "unlabelled": true} {
		bundle, err := static.Source{Components: []string{static.Stdin}, Stdin: strings.NewReader(fmt.Sprintf(text, provider))}.Load()
		if err != nil {
			t.Fatal(err)
		}
		skipped := ""
		for _, r := range static.Run(bundle, conformance.Selection{Profile: conformance.ProviderProfile, Level: conformance.Extended}) {
			if r.Rule == "CV-001" && r.Status == report.Skip {
				skipped = r.Reason
			}
		}
		if strings.Contains(skipped, "--kind") != want {
			t.Errorf("%s: CV-001 is skipped: %q", provider, skipped)
		}
		bundle.Roles = map[string]rules.Subject{"Host": rules.InfraMachine, "Hots": rules.InfraMachine}
		if got := bundle.Unknown(); !slices.Equal(got, []string{"Hots"}) {
			t.Errorf("unknown: %v", got)
		}
	}
}

// What a release has ten thousand times is looked at in the time that reading it takes.
func TestManyObjectsTakeNoLonger(t *testing.T) {
	bundle := &static.Bundle{}
	for i := range 2 {
		file := static.File{Path: fmt.Sprint(i)}
		for j := range 20000 {
			object, name := &unstructured.Unstructured{Object: map[string]any{}}, fmt.Sprint("c", j)
			object.SetAPIVersion("v1")
			object.SetKind("ConfigMap")
			object.SetName(name)
			file.Objects = append(file.Objects, object)
		}
		bundle.Components = append(bundle.Components, file)
	}
	began := time.Now()
	static.Run(bundle, conformance.Selection{Profile: conformance.ProviderProfile, Level: conformance.Extended})
	if took := time.Since(began); took > 20*time.Second {
		t.Errorf("it took %s", took) // It took minutes when each object was compared with each.
	}
}
