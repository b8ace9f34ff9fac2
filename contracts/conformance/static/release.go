package static

import (
	"fmt"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/version"

	"millwright.dev/contracts/conformance"
	"millwright.dev/contracts/rules"
)

func releaseCases() []conformance.Case[*Bundle] {
	return []conformance.Case[*Bundle]{
		look("Release/MetadataFile", metadataFile, "PR-001"),
		look("Release/ComponentsFile", componentsFile, "PR-002", "PR-003"),
		look("Release/Version", releaseVersion, "PR-004"),
		look("Release/Metadata", metadata, "PR-005", "PR-006", "PR-007"),
		look("Release/Series", series, "PR-008", "PR-009"),
		look("Release/Labels", labels, "PR-022", "PR-023", "PR-024"),
	}
}

func metadataFile(t *conformance.T, b *Bundle) {
	if b.Metadata == nil && !b.Whole {
		t.Skip("PR-001", "", "no metadata.yaml was given; add --metadata")
		return
	}
	seen := "none"
	if b.Metadata != nil {
		seen = "metadata.yaml"
	}
	check(t, "PR-001", "", b.Metadata != nil, "a file metadata.yaml", seen)
}

var types = []string{"core", "infrastructure", "bootstrap", "control-plane", "ipam", "runtime-extension", "addon"}

func componentsFile(t *conformance.T, b *Bundle) {
	var names []string
	for _, file := range b.Components {
		names = append(names, filepath.Base(file.Path))
	}
	check(t, "PR-002", "", len(names) == 1, "one file of components", fmt.Sprintf("%d, with %d objects", len(names), len(b.objects())))
	if names[0] == Stdin {
		t.Skip("PR-003", "", "standard input has no name")
		return
	}
	named := slices.ContainsFunc(types, func(kind string) bool { return names[0] == kind+"-components.yaml" })
	check(t, "PR-003", "", named, "<type>-components.yaml", names[0])
}

func releaseVersion(t *conformance.T, b *Bundle) {
	if b.Release == "" {
		t.Skip("PR-004", "", "the version of the release was not given; add --release")
		return
	}
	_, err := version.ParseSemantic(b.Release)
	check(t, "PR-004", "", err == nil, "a semantic version", b.Release)
}

// content returns the metadata; nil, with the rules skipped, if there is no file. An empty file lacks everything.
func (b *Bundle) content(t *conformance.T, ids ...rules.ID) map[string]any {
	switch {
	case b.Metadata != nil && len(b.Metadata.Objects) > 0:
		return b.Metadata.Objects[0].Object
	case b.Metadata != nil:
		return map[string]any{}
	}
	for _, id := range ids {
		t.Skip(id, "", "there is no metadata.yaml")
	}
	return nil
}

func metadata(t *conformance.T, b *Bundle) {
	content := b.content(t, "PR-005", "PR-006", "PR-007")
	if content == nil {
		return
	}
	const want = "clusterctl.cluster.x-k8s.io/v1alpha3"
	check(t, "PR-005", "", content["apiVersion"] == want, "apiVersion "+want, fmt.Sprint("apiVersion ", content["apiVersion"]))
	check(t, "PR-006", "", content["kind"] == "Metadata", "kind Metadata", fmt.Sprint("kind ", content["kind"]))
	list := seriesOf(content)
	kept := len(list) > 0 && !slices.ContainsFunc(list, func(s release) bool { return s.broken })
	check(t, "PR-007", "", kept, "releaseSeries, each with major, minor and contract", fmt.Sprintf("%d series", len(list)))
}

type release struct {
	major, minor int64
	contract     string
	broken       bool
}

func seriesOf(content map[string]any) []release {
	list, _, _ := unstructured.NestedSlice(content, "releaseSeries")
	var found []release
	for _, item := range list {
		entry, _ := item.(map[string]any)
		major, majorErr := strconv.ParseInt(fmt.Sprint(entry["major"]), 10, 64)
		// clusterctl reads an absent number as zero.
		minor, minorErr := strconv.ParseInt(fmt.Sprint(entry["minor"]), 10, 64)
		contract, _ := entry["contract"].(string)
		broken := contract == "" || majorErr != nil && entry["major"] != nil || minorErr != nil && entry["minor"] != nil
		found = append(found, release{major, minor, contract, broken})
	}
	return found
}

func series(t *conformance.T, b *Bundle) {
	content := b.content(t, "PR-008", "PR-009")
	if content == nil {
		return
	}
	parsed, err := version.ParseSemantic(b.Release)
	if err != nil {
		t.Skip("PR-008", "", "the version of the release is not known; add --release")
		t.Skip("PR-009", "", "the version of the release is not known; add --release")
		return
	}
	list := seriesOf(content)
	ours := slices.IndexFunc(list, func(s release) bool { return s.major == int64(parsed.Major()) && s.minor == int64(parsed.Minor()) })
	check(t, "PR-008", "", ours >= 0, "a series of "+b.Release, fmt.Sprintf("%d series", len(list)))
	if ours < 0 {
		t.Skip("PR-009", "", "no series is that of the release")
		return
	}
	contract := list[ours].contract
	if len(b.contractKinds(true)) == 0 {
		t.Skip("PR-009", "", "no kind of the components has a contract")
		return
	}
	check(t, "PR-009", "", slices.Contains(b.contracts(), contract), "labels of CRDs for contract "+contract,
		"labels for "+strings.Join(b.contracts(), ", "))
}

var providerName = regexp.MustCompile(`^[a-z0-9]([a-z0-9-]*[a-z0-9])?$`)

func labels(t *conformance.T, b *Bundle) {
	var without, values []string
	for _, object := range b.objects() {
		value := object.GetLabels()[providerLabel]
		if value == "" {
			without = append(without, object.GetKind()+" "+object.GetName())
			continue
		}
		values = append(values, value)
	}
	slices.Sort(values)
	values = slices.Compact(values)
	check(t, "PR-022", "", len(without) == 0, "the label "+providerLabel+" on all objects",
		orElse(short(without), "not on ", "on all objects"))
	if len(values) == 0 {
		t.Skip("PR-023", "", "no object has the label %s", providerLabel)
		t.Skip("PR-024", "", "no object has the label %s", providerLabel)
		return
	}
	kept := len(values) == 1
	for _, value := range values {
		prefixed := slices.ContainsFunc(types[1:], func(kind string) bool { return strings.HasPrefix(value, kind+"-") })
		kept = kept && (prefixed || slices.ContainsFunc(b.crds(), func(c crd) bool { return c.group() == "cluster.x-k8s.io" }))
	}
	check(t, "PR-023", "", kept, "one value, the name with the prefix of its type", strings.Join(values, ", "))
	valid := !slices.ContainsFunc(values, func(v string) bool { return !providerName.MatchString(v) || len(v) > 63 })
	check(t, "PR-024", "", valid, "lower case letters, digits and -, at most 63", strings.Join(values, ", "))
}

// short truncates a list for a report.
func short(list []string) []string {
	const most = 8
	if len(list) <= most {
		return list
	}
	return append(slices.Clone(list[:most]), fmt.Sprintf("and %d more", len(list)-most))
}
