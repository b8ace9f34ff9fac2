package manifests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"millwright.dev/contracts/conformance/report"
	"millwright.dev/contracts/rules"
	"millwright.dev/test/controlplane"
)

// TestReportsAreWhole: each committed report says what was checked, by what, and for each rule how to repeat it and why it was skipped or
// failed.
func TestReportsAreWhole(t *testing.T) {
	for file, r := range committed(t) {
		if r.Implementation.Name == "" || r.Implementation.Version == "" || r.Suite.Version == "" || r.Suite.Command == "" ||
			len(r.Results) == 0 {
			t.Errorf("%s: implementation %+v, suite %+v, %d results", file, r.Implementation, r.Suite, len(r.Results))
		}
		for _, result := range r.Results {
			explained := map[report.Status]bool{
				report.Pass: true, report.Skip: result.Reason != "", report.Fail: len(result.Failures) > 0,
			}
			if !explained[result.Status] || !strings.Contains(result.Reproduce, string(result.Rule)) {
				t.Errorf("%s, %s: %s without a reason, or without a command that repeats it: %q", file, result.Rule, result.Status, result.Reproduce)
			}
		}
	}
}

// TestReportsQuoteTheRules compares the rules' texts in all committed reports with the catalog.
func TestReportsQuoteTheRules(t *testing.T) {
	for file, r := range committed(t) {
		for _, result := range r.Results {
			if rule, known := rules.ByID(result.Rule); !known || rule.Text != result.Text {
				t.Errorf("%s, %s: %q, in the catalog %q", file, result.Rule, result.Text, rule.Text)
			}
		}
	}
}

// committed are the reports in docs, by the names of their files.
func committed(t *testing.T) map[string]*report.Report {
	t.Helper()
	root, err := controlplane.Root()
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join(root, "docs/conformance/*/*.yaml"))
	if err != nil || len(files) < len(implementations) {
		t.Fatalf("%d reports, %v", len(files), err)
	}
	reports := map[string]*report.Report{}
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		r, err := report.Decode(content)
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		reports[filepath.Base(filepath.Dir(file))+"/"+filepath.Base(file)] = r
	}
	return reports
}
