package manifests

import (
	"cmp"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/test/controlplane"
)

// The paths of reports, index and findings, from the root of the repository.
const (
	reports  = "docs/conformance/static"
	index    = "docs/conformance/README.md"
	findings = "docs/conformance/findings.md"
	begin    = "<!-- The table is written by make conformance-static. -->\n"
	end      = "<!-- End of the table. -->\n"
)

// row is a line of the table.
type row struct {
	name, version, contracts, outcome, link string
	passed, must, other, skipped            int
}

func rowOf(i implementation, r *report.Report) row {
	return row{
		name:      i.name,
		version:   i.version(),
		contracts: cmp.Or(strings.Join(r.ContractVersions, ", "), "no kinds"),
		outcome:   string(r.Outcome),
		link:      "static/" + i.file() + ".md",
		passed:    r.Summary.Passed,
		must:      r.Summary.Failed - r.Summary.FailedShould,
		other:     r.Summary.FailedShould,
		skipped:   r.Summary.Skipped,
	}
}

func tableOf(rows []row) string {
	out := "\n| Implementation | Version | Contract | Outcome | Pass | Fail: MUST | Fail: SHOULD, MAY | Skip |\n|---|---|---|---|---|---|---|---|\n"
	for _, r := range rows {
		out += fmt.Sprintf(
			"| [%s](%s) | %s | %s | %s | %d | %d | %d | %d |\n",
			r.name,
			r.link,
			r.version,
			r.contracts,
			r.outcome,
			r.passed,
			r.must,
			r.other,
			r.skipped,
		)
	}
	return out + "\n"
}

// parts are the page before the table, the table, and the page after it.
func parts(page string) (before, table, after string, err error) {
	before, rest, opened := strings.Cut(page, begin)
	table, after, closed := strings.Cut(rest, end)
	if !opened || !closed {
		return "", "", "", fmt.Errorf("%s has no table between %q and %q", index, begin, end)
	}
	return before, table, after, nil
}

func writeTable(path string, rows []row) error {
	content, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	before, _, after, err := parts(string(content))
	if err != nil {
		return err
	}
	return os.WriteFile(path, []byte(before+begin+tableOf(rows)+end+after), 0o644)
}

// sections are the texts below the headings of the second level.
func sections(page string) map[string]string {
	found := map[string]string{}
	for _, part := range strings.Split(page, "\n## ")[1:] {
		heading, text, _ := strings.Cut(part, "\n")
		found[heading] = text
	}
	return found
}

// TestReportsAreIndexedAndExplained: the table agrees with the reports, each failure of others is explained in the findings, and the
// findings claim nothing that the report does not have.
func TestReportsAreIndexedAndExplained(t *testing.T) {
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	page := read(t, filepath.Join(root, findings))
	var rows []row
	known := map[string]bool{}
	for _, i := range implementations {
		r := &report.Report{}
		if err := yaml.UnmarshalStrict([]byte(read(t, filepath.Join(root, reports, i.file()+".yaml"))), r); err != nil {
			t.Fatal(err)
		}
		known[i.file()+".yaml"], known[i.file()+".md"] = true, true
		rows = append(rows, rowOf(i, r))
		said := sections(page)[i.name+" "+i.version()]
		if i.module != "" && said == "" {
			t.Errorf("%s has no section %q", findings, i.name+" "+i.version())
		}
		explained(t, i, r, said)
	}
	if _, table, _, err := parts(read(t, filepath.Join(root, index))); err != nil || table != tableOf(rows) {
		t.Errorf("the table in %s is not that of the reports: make conformance-static (%v)", index, err)
	}
	entries, err := os.ReadDir(filepath.Join(root, reports))
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		if !known[entry.Name()] {
			t.Errorf("%s/%s is of no known implementation", reports, entry.Name())
		}
	}
}

// finding begins a line about rules that an implementation breaks.
var finding = regexp.MustCompile(`(?m)^- \*\*([A-Z]{2}-\d{3})\*\*`)

func explained(t *testing.T, i implementation, r *report.Report, said string) {
	t.Helper()
	claimed, failed := map[string]bool{}, map[string]bool{}
	for _, match := range finding.FindAllStringSubmatch(said, -1) {
		claimed[match[1]] = true
	}
	for _, result := range r.Results {
		if result.Status == report.Fail {
			failed[string(result.Rule)] = true
		}
	}
	for id := range failed {
		if !claimed[id] {
			t.Errorf("%s: %s failed, and %s does not say why", i.file(), id, findings)
		}
	}
	for id := range claimed {
		if !failed[id] {
			t.Errorf("%s: %s mentions %s, which has not failed", i.file(), findings, id)
		}
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}
